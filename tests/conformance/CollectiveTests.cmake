# SPDX-License-Identifier: Apache-2.0
# Collectives by every algorithm: each set forces one for each call. Included where `passed` is known.
set(coll_linear BARRIER=linear BROADCAST=linear REDUCE=linear ALLREDUCE=linear REDUCE_SCATTER=linear SCAN=linear
  EXSCAN=linear GATHER=linear SCATTER=linear ALLGATHER=linear ALLTOALL=linear)
set(coll_trees BARRIER=binomial BROADCAST=binomial REDUCE=binomial ALLREDUCE=binomial REDUCE_SCATTER=pairwise
  GATHER=binomial SCATTER=binomial ALLGATHER=bruck ALLTOALL=bruck)
set(coll_doubling BARRIER=recursive-doubling BROADCAST=scatter-allgather REDUCE=rabenseifner
  ALLREDUCE=recursive-doubling REDUCE_SCATTER=recursive-halving SCAN=recursive-doubling EXSCAN=recursive-doubling
  ALLGATHER=recursive-doubling ALLTOALL=pairwise)
set(coll_rings BARRIER=dissemination BROADCAST=chain ALLREDUCE=ring REDUCE_SCATTER=ring ALLGATHER=ring)
set(coll_circulant ALLREDUCE=circulant REDUCE_SCATTER=circulant ALLGATHER=circulant)
set(coll_halving ALLREDUCE=rabenseifner REPRODUCIBLE=0)
set(coll_reproducible REPRODUCIBLE=1)
set(coll_reproducible_linear REPRODUCIBLE=1 ALLREDUCE=linear REDUCE=linear REDUCE_SCATTER=linear)
set(coll_reproducible_trees REPRODUCIBLE=1 ALLREDUCE=binomial REDUCE=binomial)

foreach(set IN ITEMS linear trees doubling rings circulant halving reproducible reproducible_linear reproducible_trees)
  set(env "")
  set(options "")
  foreach(setting IN LISTS coll_${set})
    list(APPEND env RMA_COLL_${setting})
    list(APPEND options -x RMA_COLL_${setting})
  endforeach()
  set(cases --case ^collective ${passed})
  rma_add_program_test(NAME conformance.coll.${set} TARGET conformance RANKS 3 ENV ${env} ARGS --effort 2 ${cases}
    LABELS not-tsan TIMEOUT 120)
  rma_add_program_test(NAME conformance.coll.${set}.sim TARGET conformance LAUNCHER rma-sim RANKS 4 5
    OPTIONS --ranks-per-node 2 ${options} ARGS --effort 1 ${cases} LABELS sim not-tsan TIMEOUT 120)
  rma_add_program_test(NAME conformance.coll.${set}.tcp TARGET conformance RANKS 3 OPTIONS --nodes 3
    ENV RMA_FABRIC=tcp ${env} ARGS --effort 1 ${cases} LABELS tcp not-tsan TIMEOUT 120)
  rma_add_program_test(NAME conformance.coll.${set}.long TARGET conformance LAUNCHER rma-sim
    RANKS 1 2 3 4 5 6 7 8 9 16 33 OPTIONS --ranks-per-node 3 ${options} ARGS ${cases} LABELS long sim TIMEOUT 3600)
  rma_add_program_test(NAME conformance.coll.${set}.shm.long TARGET conformance RANKS 1 2 3 4 8 ENV ${env}
    ARGS ${cases} LABELS long TIMEOUT 600)
endforeach()

# Algorithms that know the nodes of all members.
set(coll_hierarchical BARRIER=hierarchical BROADCAST=hierarchical REDUCE=hierarchical ALLREDUCE=hierarchical)
list(TRANSFORM coll_hierarchical PREPEND RMA_COLL_ OUTPUT_VARIABLE env)
list(TRANSFORM env PREPEND "-x;" OUTPUT_VARIABLE options)
rma_add_program_test(NAME conformance.coll.hierarchical.sim TARGET conformance LAUNCHER rma-sim RANKS 5
  OPTIONS --ranks-per-node 2 ${options} ARGS --effort 1 --case ^collective ${passed} LABELS sim not-tsan TIMEOUT 120)
rma_add_program_test(NAME conformance.coll.hierarchical.tcp TARGET conformance RANKS 4 OPTIONS --nodes 2
  ENV RMA_FABRIC=tcp ${env} ARGS --effort 1 --case ^collective ${passed} LABELS tcp not-tsan TIMEOUT 120)
rma_add_program_test(NAME conformance.coll.hierarchical.long TARGET conformance LAUNCHER rma-sim
  RANKS 2 3 4 5 6 7 8 9 16 33 OPTIONS --ranks-per-node 3 ${options} ARGS --case ^collective ${passed} LABELS long sim
  TIMEOUT 3600)

# Puts with a signal into landing memory: within a node by the kernel, by the simulated network, and refused by TCP.
set(coll_one_sided "")
foreach(call IN ITEMS BARRIER BROADCAST REDUCE ALLREDUCE REDUCE_SCATTER SCAN EXSCAN GATHER SCATTER ALLGATHER ALLTOALL)
  list(APPEND coll_one_sided RMA_COLL_${call}=one-sided)
endforeach()
list(TRANSFORM coll_one_sided PREPEND "-x;" OUTPUT_VARIABLE options)
rma_add_program_test(NAME conformance.coll.one-sided TARGET conformance RANKS 3 ENV ${coll_one_sided}
  ARGS --effort 2 --case ^collective ${passed} LABELS not-tsan TIMEOUT 120)
rma_add_program_test(NAME conformance.coll.one-sided.sim TARGET conformance LAUNCHER rma-sim RANKS 4 5
  OPTIONS --ranks-per-node 2 ${options} ARGS --effort 1 --case ^collective ${passed} LABELS sim not-tsan TIMEOUT 120)
rma_add_program_test(NAME conformance.coll.one-sided.tcp TARGET conformance RANKS 3 OPTIONS --nodes 3
  ENV RMA_FABRIC=tcp ${coll_one_sided} ARGS --effort 1 --case ^collective.broadcast
  MATCH "rma: rank 0: RMA_COLL_BROADCAST=one-sided does not apply: writes of tcp need the target's processor"
  LABELS tcp not-tsan TIMEOUT 120)
rma_add_program_test(NAME conformance.coll.one-sided.long TARGET conformance LAUNCHER rma-sim
  RANKS 1 2 3 4 5 6 7 8 9 16 33 OPTIONS --ranks-per-node 3 ${options} ARGS --case ^collective ${passed}
  LABELS long sim TIMEOUT 3600)

foreach(strategy IN ITEMS test-on-init wait-on-send start-all thread)
  rma_add_program_test(NAME conformance.coll.progress.${strategy} TARGET conformance RANKS 2
    ENV RMA_NBC_PROGRESS=${strategy} RMA_INTRANODE=off ARGS --effort 1 --case ^collective ${passed}
    LABELS not-tsan TIMEOUT 120)
endforeach()
set(blocks_flat RMA_COLL_ALLGATHER=flat RMA_COLL_ALLTOALL=flat)
foreach(way IN ITEMS flat direct)
  rma_add_program_test(NAME conformance.coll.memory.${way} TARGET conformance RANKS 2 4
    ENV RMA_COLL_ALLREDUCE=${way} ${blocks_${way}} ARGS --effort 4 --case ^collective ${passed} LABELS not-tsan
    TIMEOUT 120)
endforeach()
rma_add_program_test(NAME conformance.coll.memory.release-gather TARGET conformance RANKS 2 4
  ENV RMA_COLL_REDUCE=release-gather RMA_COLL_BROADCAST=release-gather RMA_COLL_GATHER=release-gather
    RMA_COLL_SCATTER=release-gather
  ARGS --effort 2 --case ^collective ${passed} LABELS not-tsan TIMEOUT 120)
rma_add_program_test(NAME conformance.coll.memory.blocks.long TARGET conformance RANKS 2 3 4 5 8
  ENV ${blocks_flat} RMA_COLL_GATHER=release-gather RMA_COLL_SCATTER=release-gather
  ARGS --case ^collective ${passed} LABELS long TIMEOUT 600)
# A tree of two levels, by blocks of ranks, and by cores on a machine of two sockets that there need not be. There the
# ranks of a socket follow each other, or not.
set(trees RMA_COLL_ALLREDUCE=tree RMA_COLL_REDUCE=tree RMA_COLL_BROADCAST=tree)
rma_add_program_test(NAME conformance.coll.memory.tree TARGET conformance RANKS 2 5 8
  ENV ${trees} RMA_COLL_REPRODUCIBLE=1 ARGS --effort 2 --case ^collective ${passed} LABELS not-tsan TIMEOUT 120)
foreach(cores IN ITEMS 2 4)
  rma_add_program_test(NAME conformance.coll.memory.sockets.${cores} TARGET conformance RANKS 8
    ENV "HWLOC_SYNTHETIC=pack:2 core:${cores} pu:1" RMA_COLL_REPRODUCIBLE=1 OPTIONS --bind core
    ARGS --effort 2 --case ^collective ${passed} LABELS not-tsan TIMEOUT 120)
endforeach()
# Two threads, each with a team of its own: it must not be skipped.
rma_add_program_test(NAME conformance.coll.threads TARGET conformance RANKS 2 4 ENV RMA_THREADS=multiple
  ARGS --case ^collective.teams_in_threads MATCH "1 passed, 0 failed, 0 skipped" LABELS not-tsan TIMEOUT 120)
