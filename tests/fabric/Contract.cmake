# SPDX-License-Identifier: Apache-2.0
# rma_add_fabric_contract(TARGET): links the cases of the contract of fabrics (contract_*.cpp), which are compiled once,
# into a fabric's own test program. The program defines what contract_cases.hpp leaves open.
function(rma_add_fabric_contract target)
  if(NOT TARGET rma_fabric_contract)
    set(folder ${rma_SOURCE_DIR}/tests/fabric)
    add_library(rma_fabric_contract OBJECT ${folder}/contract_bulk.cpp ${folder}/contract_endings.cpp
      ${folder}/contract_messages.cpp ${folder}/contract_transfers.cpp)
    target_include_directories(rma_fabric_contract PRIVATE ${rma_SOURCE_DIR}/src ${rma_SOURCE_DIR}/tests)
    target_link_libraries(rma_fabric_contract PRIVATE
      rma::rma rma_test_main rma_warnings Boost::headers fmt::fmt Threads::Threads)
    set_target_properties(rma_fabric_contract PROPERTIES CXX_EXTENSIONS OFF UNITY_BUILD OFF)
    if(RMA_BUILD_QUICKLY)
      target_compile_options(rma_fabric_contract PRIVATE -O0)
      target_precompile_headers(rma_fabric_contract REUSE_FROM rma_test_headers)
    endif()
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:rma_fabric_contract>)
endfunction()
