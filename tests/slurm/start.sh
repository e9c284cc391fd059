#!/usr/bin/env bash
# A whole Slurm on this machine for the tests: one controller, two nodes of four CPUs and four GPUs
# that are none (links to /dev/null), partitions `main` and `preemptible`. No systemd and no cgroups,
# so memory is counted but never enforced. Daemons that run already are left alone.
#
#   bash tests/slurm/start.sh      needs root and the packages munge, slurmctld, slurmd, slurm-client
#   bash tests/slurm/stop.sh       ends what this started, and removes it
#
# SLURM_TEST_ACCOUNTING=1: with accounting (accounting.sh), and squeue forgets a job once it has ended.
# SLURM_TEST_KILL_WAIT: seconds between a job's SIGTERM and its SIGKILL.
#
# Everything lies in $SLURM_TEST_DIR, but for Munge's socket and the links in /etc/slurm, which are
# never laid over another Slurm's files.
set -euo pipefail

DIR=${SLURM_TEST_DIR:-${TMPDIR:-/tmp}/async-rollout-slurm}
HOST=$(hostname -s)
NODES="n1 n2"
FILES="slurm.conf gres.conf slurmdbd.conf"
PROGRAMS="munged slurmctld slurmd sbatch"
PACKAGES="munge slurmctld slurmd slurm-client"
ACCOUNTING_PORT=16819
if [ "${SLURM_TEST_ACCOUNTING:-0}" = 1 ]; then
  PROGRAMS="$PROGRAMS slurmdbd sacctmgr mariadbd mariadb-install-db"
  PACKAGES="$PACKAGES slurmdbd mariadb-server"
  STORAGE=accounting_storage/slurmdbd
  MIN_JOB_AGE=2  # seconds that squeue knows a finished job: from then on only sacct does
else
  STORAGE=accounting_storage/none
  MIN_JOB_AGE=3600  # squeue has to know a finished job until Snakemake has asked for it
fi

# Exit code 3: not on this machine.
refuse() { echo "start.sh: $*" >&2; exit 3; }

runs() { # PIDFILE NAME: pids are used again, so the process must be that daemon
  [ -s "$1" ] && [ "$(cat "/proc/$(cat "$1")/comm" 2> /dev/null)" = "$2" ]
}

soon() { # CONDITION: within half a minute
  for _ in $(seq 300); do eval "$1" > /dev/null 2>&1 && return; sleep 0.1; done
  tail -n 20 "$DIR"/log/* >&2
  echo "start.sh: waited in vain for: $1" >&2
  exit 1
}

[ "$(id -u)" = 0 ] || refuse "needs root: the daemons start jobs as their users"
for program in $PROGRAMS; do
  command -v "$program" > /dev/null || refuse "$program is not installed: apt-get install $PACKAGES"
done
[ $STORAGE = accounting_storage/none ] || [ -n "$(hostname -I)" ] \
  || refuse "slurmdbd needs an address of this machine besides the loopback's"
for file in $FILES; do
  [ ! -e "/etc/slurm/$file" ] || [ "$(readlink "/etc/slurm/$file")" = "$DIR/etc/$file" ] \
    || refuse "/etc/slurm/$file belongs to another Slurm"
done
if runs "$DIR/run/slurmctld.pid" slurmctld && ! grep -qx "AccountingStorageType=$STORAGE" "$DIR/etc/slurm.conf"; then
  echo "start.sh: a Slurm that is not on $STORAGE runs here: bash tests/slurm/stop.sh ends it" >&2
  exit 1
fi
mkdir -p /etc/slurm "$DIR"/{etc,gpu,log,run,spool,state}
chmod 755 "$DIR"

# Munge signs what clients and daemons say to each other.
install -d -o munge -g munge -m 0755 /run/munge
install -d -o munge -g munge -m 0700 /etc/munge /var/lib/munge /var/log/munge
if [ ! -s /etc/munge/munge.key ]; then
  (umask 077 && head -c 1024 /dev/urandom > /etc/munge/munge.key)
  chown munge: /etc/munge/munge.key
fi
if ! runs /run/munge/munged.pid munged; then
  setpriv --reuid=munge --regid=munge --clear-groups munged --force
  soon "cp /run/munge/munged.pid $DIR/run"  # ours to end
fi
soon "munge -n | unmunge"

cat > "$DIR/etc/slurm.conf" << CONF
ClusterName=test
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# a requeued job is held for as long as a credential lives: two minutes unless told otherwise
AuthInfo=cred_expire=5
StateSaveLocation=$DIR/state
SlurmctldPidFile=$DIR/run/slurmctld.pid
SlurmctldLogFile=$DIR/log/slurmctld
SlurmdSpoolDir=$DIR/spool/%n
SlurmdPidFile=$DIR/run/slurmd-%n.pid
SlurmdLogFile=$DIR/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=$STORAGE
AccountingStorageHost=localhost
AccountingStoragePort=$ACCOUNTING_PORT
MpiDefault=none
ReturnToService=1
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=512
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MinJobAge=$MIN_JOB_AGE
KillWait=${SLURM_TEST_KILL_WAIT:-30}
CONF
: > "$DIR/etc/gres.conf"
port=17100
for node in $NODES; do
  port=$((port + 1))
  mkdir -p "$DIR/gpu/$node" "$DIR/spool/$node"
  # Slurm counts character devices, and takes CUDA_VISIBLE_DEVICES from the numbers in their names
  for gpu in 0 1 2 3; do ln -sfn /dev/null "$DIR/gpu/$node/gpu$gpu"; done
  echo "NodeName=$node Name=gpu Type=h100 Flags=nvidia_gpu_env File=$DIR/gpu/$node/gpu[0-3]" >> "$DIR/etc/gres.conf"
  echo "NodeName=$node NodeHostname=$HOST NodeAddr=127.0.0.1 Port=$port CPUs=4 RealMemory=32000" \
    "Gres=gpu:h100:4 Feature=fast State=UNKNOWN" >> "$DIR/etc/slurm.conf"
done
cat >> "$DIR/etc/slurm.conf" << CONF
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=2 PreemptMode=OFF
PartitionName=preemptible Nodes=ALL MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE
CONF
for file in slurm.conf gres.conf; do ln -sfn "$DIR/etc/$file" "/etc/slurm/$file"; done

# shellcheck source=tests/slurm/accounting.sh
[ $STORAGE = accounting_storage/none ] || . "$(dirname "$0")/accounting.sh"

runs "$DIR/run/slurmctld.pid" slurmctld || slurmctld
soon "scontrol ping | grep -q 'is UP'"
for node in $NODES; do
  runs "$DIR/run/slurmd-$node.pid" slurmd || slurmd -N "$node"
done
soon "[ \$(sinfo -h -N -p main -t idle,mixed,allocated -o %N | wc -l) = 2 ]"
