// SPDX-License-Identifier: Apache-2.0
/// \file
/// This machine's addresses.
#pragma once

#include <string>

namespace rma::boot {

/// The address that others reach this machine by: that of the interface `wanted` (or `wanted` itself, if it is an
/// address); "" means the one that this host's name stands for, else the first that is up. Never the loopback
/// interface, unless it is wanted. Throws Error(bad_boot) that lists what there is.
std::string address_of_interface(const std::string& wanted);

/// An address of this machine that its own processes reach: 127.0.0.1, or ::1 where there is no other. Throws
/// Error(unreachable) if there is none: then the loopback interface is down.
std::string loopback_address();

}  // namespace rma::boot
