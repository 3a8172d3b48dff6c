// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state of the machine itself now. Virtual machines change theirs while a benchmark runs (the two cores come
/// near each other or go far), and every figure between processes follows; so points carry the state they were
/// measured in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perf {

/// Ranks 0 and 1 bounce `line` between them: ns one way. Both must call it at the same time, after a barrier.
double line_crossing_ns(std::uint64_t& line, int rank);

/// ns for a step of a fixed chain of instructions, some 0.2 ms of them. More than this machine's usual: the core is
/// shared, with other virtual machines maybe.
double pace_ns();

/// 10^9 bytes per second of memcpy between two private buffers of so many bytes.
double memcpy_gbs(std::size_t bytes);

}  // namespace perf
