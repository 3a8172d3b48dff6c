// SPDX-License-Identifier: Apache-2.0
/// \file
/// The factorization and its proof.
#pragma once

#include "splash_lu_fetch.hpp"

namespace splash_lu {

/// The matrix becomes its L and U. Collective.
void factor(Worker& worker);

/// ||A - L U|| / ||A|| (Frobenius norms), where A is generated anew. Collective.
double residual(rma::Team& world, Worker& worker);

}  // namespace splash_lu
