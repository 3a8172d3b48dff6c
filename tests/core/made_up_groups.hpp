// SPDX-License-Identifier: Apache-2.0
/// \file
/// Control groups that a test makes up.
#pragma once

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace rma::test {

/// A folder with control groups, removed at the end.
class made_up_groups {
 public:
  made_up_groups() {
    std::string name = (std::filesystem::temp_directory_path() / "rma-groups-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~made_up_groups() { std::filesystem::remove_all(root_); }
  made_up_groups(const made_up_groups&) = delete;
  made_up_groups& operator=(const made_up_groups&) = delete;

  void write(const std::filesystem::path& file, std::string_view text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  /// The result of `of`, granted_cores and the like, for a process with this membership.
  template <class Of>
  [[nodiscard]] auto granted(Of of, std::string_view membership) const {
    write("membership", membership);
    return of(root_ / "membership", root_);
  }
  [[nodiscard]] std::filesystem::path root() const { return root_; }

 private:
  std::filesystem::path root_;
};

}  // namespace rma::test
