// SPDX-License-Identifier: Apache-2.0
// The measurements of perf/ping_pong.cpp in MPI.
#include <cstddef>
#include <vector>

#include "mpi.hpp"

namespace {

constexpr int tag = 1;
constexpr int messages_per_reply = 100;

struct pair {
  pair(perf::bench& b, std::size_t bytes)
      : first(b.rank() % 2 == 0),
        peer(b.rank() ^ 1),
        count(static_cast<int>(bytes)),
        out(bytes, std::byte{1}),
        in(bytes) {}

  void send() { MPI_Send(out.data(), count, MPI_BYTE, peer, tag, MPI_COMM_WORLD); }
  void receive() { MPI_Recv(in.data(), count, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
  void post(MPI_Request& request) { MPI_Irecv(in.data(), count, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &request); }

  bool first;
  int peer, count;
  std::vector<std::byte> out, in;
};

void measure(perf::bench& b, std::size_t bytes) {
  pair p(b, bytes);
  b.points.everyone({"ping_pong", bytes, perf::unit::ns, 2}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      if (p.first) p.send();
      p.receive();
      if (!p.first) p.send();
    }
  });
  b.points.everyone({"bowtie", bytes}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Request posted = MPI_REQUEST_NULL;
      p.post(posted);
      p.send();
      MPI_Wait(&posted, MPI_STATUS_IGNORE);
    }
  });
}

void stream(perf::bench& b, std::size_t bytes) {
  pair p(b, bytes);
  b.points.everyone({"stream", bytes, perf::unit::ns, messages_per_reply}, [&](std::uint64_t n) {
    std::vector<MPI_Request> all(messages_per_reply);
    for (std::uint64_t i = 0; i < n; ++i) {
      for (MPI_Request& each : all) {
        if (p.first) MPI_Isend(p.out.data(), p.count, MPI_BYTE, p.peer, tag, MPI_COMM_WORLD, &each);
        if (!p.first) p.post(each);
      }
      MPI_Waitall(messages_per_reply, all.data(), MPI_STATUSES_IGNORE);
      if (p.first) MPI_Recv(nullptr, 0, MPI_BYTE, p.peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (!p.first) MPI_Send(nullptr, 0, MPI_BYTE, p.peer, 2, MPI_COMM_WORLD);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "messages with tags between two ranks, by MPI", 2, [](perf::bench& b) {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (const std::size_t bytes : {0UL, 8UL, 1024UL, 4096UL, 16384UL, 65536UL, 1048576UL}) {
      if (ranks == 2) measure(b, bytes);
    }
    for (const std::size_t bytes : {8UL, 1024UL, 65536UL, 1048576UL}) stream(b, bytes);
  });
}
