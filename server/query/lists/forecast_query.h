// Query.Forecast: reads what a forecast is made from, and puts it in the words of the protocol.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/conditions/window/signal_names.h"
#include "server/query/read/query_control.h"
#include "storage/store.h"
#include "tacho/v1/query.pb.h"

namespace tacho::server::query {

// Reads the samples of one metric of one task, in bounded memory.
//   INVALID_ARGUMENT  the text names the field.
//   NOT_FOUND         no such job; the text names the nearest names.
//   others            from the store and the control.
// What is too little for a forecast is no error: the answer says what is missing.
absl::Status GetForecast(const storage::Store& store, const v1::ForecastRequest& request,
                         const conditions::SignalNames& names, uint64_t max_series, absl::Time now,
                         const QueryControl& control, v1::ForecastResponse* response);

}  // namespace tacho::server::query
