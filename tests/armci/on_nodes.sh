#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# on_nodes.sh NODES PROGRAM...: under mpirun, each rank on its virtual node: the first ranks on the first.
nodes=$1
shift
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
size=${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}
RMA_NODE=node$((rank * nodes / size)) exec "$@"
