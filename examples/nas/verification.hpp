// SPDX-License-Identifier: Apache-2.0
/// \file
/// Results published with the NAS parallel benchmarks (NPB 3.3) for the classes S and W.
#pragma once

#include <array>
#include <vector>

namespace nas::published {

/// CG: the eigenvalue estimate zeta.
constexpr double cg(char size) { return size == 'S' ? 8.5971775078648 : 10.362595087124; }

/// MG: the norm of the last residual.
constexpr double mg(char size) { return size == 'S' ? 0.5307707005734e-04 : 0.6467329375339e-05; }

/// EP: sums of the Gaussian deviates.
inline std::vector<double> ep(char size) {
  if (size == 'S') return {-3.247834652034740e3, -6.958407078382297e3};
  return {-2.863319731645753e3, -6.320053679109499e3};
}

/// FT: checksums after each step, real and imaginary part.
inline std::vector<double> ft(char size) {
  if (size == 'S') {
    return {5.546087004964e+02, 4.845363331978e+02, 5.546385409190e+02, 4.865304269511e+02,
            5.546148406171e+02, 4.883910722337e+02, 5.545423607415e+02, 4.901273169046e+02,
            5.544255039624e+02, 4.917475857993e+02, 5.542683411902e+02, 4.932597244941e+02};
  }
  return {5.673612178944e+02, 5.293246849175e+02, 5.631436885271e+02, 5.282149986629e+02,
          5.594024089970e+02, 5.270996558037e+02, 5.560698047020e+02, 5.260027904925e+02,
          5.530898991250e+02, 5.249400845633e+02, 5.504159734538e+02, 5.239212247086e+02};
}

/// DT: the checksums of black hole, white hole and shuffle.
inline std::vector<double> dt(char size) {
  if (size == 'S') return {30892725, 67349758, 58875767};
  return {4102461, 204280762, 186944764};
}

/// IS: numbers of five keys in the sequence, and what their rank is in iteration 0 of the count below.
struct Ranked {
  std::array<int, 5> key;
  std::array<int, 5> rank;
};
constexpr Ranked is(char size) {
  if (size == 'S') return {{48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}};
  return {{357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}};
}

}  // namespace nas::published
