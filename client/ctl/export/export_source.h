// Everything that a collector has of one job, as the messages of an export.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "client/ctl/call/query_client.h"
#include "tacho/v1/query.pb.h"

namespace tacho::ctl {

// In the order that query.proto gives them; `handle` returns an error to stop, which is returned.
// Other statuses as the calls of QueryClient.
absl::Status ReadExport(QueryClient& client, const v1::ExportRequest& request,
                        const std::function<absl::Status(const v1::ExportResponse&)>& handle);

}  // namespace tacho::ctl
