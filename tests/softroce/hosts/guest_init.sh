#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# The first process of a guest. It does what is the same for every job, says so, and waits: this is where a snapshot is
# taken. Then it reads what is particular to its job (guest_job.sh with settings before it) and becomes that.
#
# Channels: /dev/vport0p1 to and from softroce, p2 and p3 the command's standard output and error.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

for module in /modules/*; do
  insmod "$module" || echo "softroce: $module cannot be loaded"
done
rm -r /modules
# IPv6 addresses, which make the device's first GID, are there at once.
echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad
echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad

# The root of the machine will be seen in /new: /machine below, what is written in /written.
mkdir /machine /written /new
mount -t tmpfs -o size=75% written /written
mkdir /written/upper /written/work
mkfifo -m 666 /out /err

waited=0
until [ -c /dev/vport0p1 ] && [ -c /dev/vport0p2 ] && [ -c /dev/vport0p3 ]; do
  waited=$((waited + 1))
  [ $waited -le 1000 ] || echo "softroce: no channels"
  usleep 10000
done
exec 3<>/dev/vport0p1
echo ready >&3
read -r size <&3
head -c "$size" <&3 >/job
. /job
