// SPDX-License-Identifier: Apache-2.0
/// \file
/// A session asks PMI-2 by its wire protocol: lines of `name=value;` after their length in six characters, on the
/// descriptor PMI_FD.
///
///   rank                         launcher
///   init (PMI-1's form)      ->  response_to_init
///   fullinit                 ->  rank, size
///   info-getjobattr          ->  PMI_process_mapping
///   kvs-put, kvs-fence       ->  rc
///   kvs-get                  ->  value
///   abort | finalize         ->  finalize-response
///
/// MPICH, and Slurm's other way besides PMIx, speak it; but MPI cannot use the same descriptor in one process.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "boot/introduction.hpp"
#include "boot/socket.hpp"

namespace rma::boot {

/// The fields of a message. Public for its test.
std::map<std::string, std::string, std::less<>> pmi2_fields(std::string_view message);
/// How many nodes a process mapping like "(vector,(0,2,4))" has; 0 if it is not understood.
int pmi2_nodes(std::string_view mapping);

class pmi2_session final : public introduction {
 public:
  /// Throws Error(bad_boot).
  pmi2_session();
  ~pmi2_session() override { finalize(); }

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] bool one_node() override;
  std::string from_rank_0(const std::string& text, int timeout_s) override;
  void abort(int code, std::string_view message) noexcept override;
  void finalize() noexcept override;

 private:
  using fields = std::map<std::string, std::string, std::less<>>;
  void say(std::string_view text) const;
  [[nodiscard]] std::string hear(std::size_t bytes) const;
  fields request(std::string_view command, std::string_view arguments, int timeout_s = 0);
  void await_answer(int timeout_s) const;
  [[nodiscard]] int number(const fields& from, std::string_view name) const;

  unique_fd fd_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace rma::boot
