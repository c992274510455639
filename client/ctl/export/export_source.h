// Reads everything that a collector has of one job.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "client/ctl/call/query_client.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// Messages come in the order of query.proto. An error of `handle` stops reading and is returned;
// other statuses are those of QueryClient.
absl::Status ReadExport(QueryClient& client, const v1::ExportRequest& request,
                        const std::function<absl::Status(const v1::ExportResponse&)>& handle);

}  // namespace tacho::ctl
