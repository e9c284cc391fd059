# Accounting for the Slurm of start.sh, which sources this: a MariaDB of its own, whose data lie in $DIR
# and which hears only this machine, and slurmdbd, which keeps there what became of jobs that squeue has
# long forgotten. Needs the packages slurmdbd and mariadb-server.
# shellcheck shell=bash disable=SC2154  # DIR, runs and soon are start.sh's

DATABASE_PORT=13306
SOCKET=$DIR/mysql/socket

if ! runs "$DIR/run/mariadbd.pid" mariadbd; then
  rm -rf "$DIR/mysql"  # what one that was killed left may be half a database
  mkdir -p "$DIR/mysql"
  # as root, like the other daemons: $DIR may lie where no other user comes
  mariadb-install-db --no-defaults --user=root --datadir="$DIR/mysql/data" --skip-test-db \
    --auth-root-authentication-method=socket > "$DIR/log/mariadb-install-db" 2>&1 \
    || { cat "$DIR/log/mariadb-install-db" >&2; exit 1; }
  setsid mariadbd --no-defaults --user=root --datadir="$DIR/mysql/data" --socket="$SOCKET" \
    --bind-address=127.0.0.1 --port=$DATABASE_PORT < /dev/null > "$DIR/log/mariadbd" 2>&1 &
  echo $! > "$DIR/run/mariadbd.pid"
fi
soon "mariadb-admin --no-defaults --socket=$SOCKET ping"
mariadb --no-defaults --socket="$SOCKET" << SQL
CREATE DATABASE IF NOT EXISTS slurm_acct_db;
CREATE USER IF NOT EXISTS slurm@127.0.0.1;
GRANT ALL ON slurm_acct_db.* TO slurm@127.0.0.1;
SQL

(umask 077 && cat > "$DIR/etc/slurmdbd.conf") << CONF
AuthType=auth/munge
DbdHost=localhost
DbdPort=$ACCOUNTING_PORT
SlurmUser=root
LogFile=$DIR/log/slurmdbd
PidFile=$DIR/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$DATABASE_PORT
StorageUser=slurm
StorageLoc=slurm_acct_db
CONF
ln -sfn "$DIR/etc/slurmdbd.conf" /etc/slurm/slurmdbd.conf
runs "$DIR/run/slurmdbd.pid" slurmdbd || slurmdbd
soon "sacctmgr --noheader show cluster"
[ -n "$(sacctmgr --noheader show cluster test)" ] || sacctmgr --immediate add cluster test > /dev/null
