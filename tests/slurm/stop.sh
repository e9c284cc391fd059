#!/usr/bin/env bash
# Ends the Slurm that start.sh started, by its pid files, and removes it.
set -euo pipefail

DIR=${SLURM_TEST_DIR:-${TMPDIR:-/tmp}/async-rollout-slurm}

end() { # PIDFILE NAME: pids are used again, so the process must be that daemon
  [ -s "$1" ] || return 0
  local pid
  pid=$(cat "$1")
  [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = "$2" ] || return 0
  kill "$pid"
  for _ in $(seq 50); do [ -e "/proc/$pid" ] || return 0; sleep 0.1; done
  kill -KILL "$pid"
}

[ -d "$DIR" ] || exit 0
timeout 10 scancel --user "$(id -un)" || true
for file in "$DIR"/run/slurmd-*.pid; do [ -e "$file" ] && end "$file" slurmd; done
end "$DIR/run/slurmctld.pid" slurmctld
end "$DIR/run/slurmdbd.pid" slurmdbd
end "$DIR/run/mariadbd.pid" mariadbd
end "$DIR/run/munged.pid" munged
for file in slurm.conf gres.conf slurmdbd.conf; do
  [ "$(readlink "/etc/slurm/$file")" != "$DIR/etc/$file" ] || rm "/etc/slurm/$file"
done
rm -rf "$DIR"
