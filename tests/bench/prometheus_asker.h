// Servers with Prometheus' HTTP API, which VictoriaMetrics has too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/sources/fetch/http_response.h"
#include "agent/sources/fetch/tcp_socket.h"
#include "tests/bench/query_asker.h"

namespace tacho::bench {

// Decode() reads answers with RapidJSON, in place and without building a document. Only the answers
// of /query, /query_range and VictoriaMetrics' /export are known to it: others count as nothing.
class PrometheusAsker final : public QueryAsker {
 public:
  // Paths with their parameters, a line each.
  PrometheusAsker(std::string host, int port, const std::string& paths);

  // To be called once, before the first Ask().
  absl::Status Connect();

  absl::Status Ask() override;
  absl::StatusOr<Answer> Decode() override;

 private:
  // Over one connection, which stays open.
  absl::StatusOr<agent::HttpResponse> Get(const std::string& path);

  const std::string host_;
  const int port_;
  std::unique_ptr<agent::TcpSocket> socket_;
  const std::vector<std::string> paths_;
  std::vector<std::string> bodies_;
};

}  // namespace tacho::bench
