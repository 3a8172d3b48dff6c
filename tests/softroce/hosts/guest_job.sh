# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# The second half of a guest's first process. Before it come the settings: host, hosts, network (of its IPv4 address, 3
# bytes), now, has_out, command (a script).
fail() {
  echo "failed $*" >&3
  sleep 1000
}

date -s "@$now" >/dev/null
hostname "host$host"
ip link set lo up
ip link set eth0 address "52:54:00:52:43:0$((host + 1))"
ip link set eth0 up
ip addr add "$network.$((host + 1))/24" dev eth0 || fail "no Ethernet"

mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=1048576,cache=loose root /machine || fail "no root file system"
mount -t overlay -o lowerdir=/machine,upperdir=/written/upper,workdir=/written/work overlay /new ||
  fail "no overlay on the root file system"
mount -t devtmpfs dev /new/dev
mount -t sysfs sys /new/sys
mount -t proc proc /new/proc
mount -t tmpfs run /new/run
mkdir -p /new/dev/shm /new/dev/pts /new/run/lock
mount -t tmpfs -o size=75% shm /new/dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /new/dev/pts
chmod 1777 /new/dev/shm /new/run/lock
ln -sf /proc/self/fd /new/dev/fd
ln -sf /proc/self/fd/0 /new/dev/stdin
ln -sf /proc/self/fd/1 /new/dev/stdout
ln -sf /proc/self/fd/2 /new/dev/stderr
if [ "$has_out" = 1 ]; then
  mkdir -p /new/out
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576 out /new/out || fail "no /out"
fi
index=0
while [ $index -lt "$hosts" ]; do
  echo "$network.$((index + 1)) host$index" >>/new/etc/hosts
  index=$((index + 1))
done
chroot /new rdma link add rxe0 type rxe netdev eth0 || fail "no RDMA device"
printf '%s\n' "$command" >/new/run/softroce-command

# All hosts start together: the network of each is there before any command looks for it.
echo prepared >&3
read -r go <&3
[ "$go" = go ] || fail "not told to go"
{ cat </out >/dev/vport0p2; echo drained >&3; } &
{ cat </err >/dev/vport0p3; echo drained >&3; } &
setsid chroot /new /bin/sh /run/softroce-command </dev/null >/out 2>/err 3>&- &
wait $!
echo "status $?" >&3
while :; do sleep 1000; done
