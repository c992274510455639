// A second thread for a query that has to decode many columns. It decodes columns that the query
// needs next, and the store keeps them until then. The query's answer is the same with it and
// without. The thread has a view of its own, so the open rows of the series are held twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/query/range/range_plan.h"
#include "storage/store.h"

namespace tacho::server::query {

// Takes work and runs it on another thread at once; false: none is free.
using SpareThread = std::function<bool(std::function<void()>)>;

// One thread, besides the spare one, whose end nobody waits for.
class ColumnsAhead {
 public:
  // Without `spare` it does nothing. The store must outlive the work on the spare thread; the
  // outputs and the plan, which does not aggregate, must outlive this object.
  ColumnsAhead(const storage::Store& store, const RangePlan& plan,
               const std::vector<RangeOutput>& outputs, SpareThread spare);
  ~ColumnsAhead();
  ColumnsAhead(const ColumnsAhead&) = delete;
  ColumnsAhead& operator=(const ColumnsAhead&) = delete;

  // Call before reading outputs[next], with the number of columns that the query has decoded
  // itself. Asks for the thread once the store turns out not to know columns, and enough are left.
  void Pass(size_t next, uint64_t columns_decoded);

 private:
  class Work;

  const storage::Store& store_;
  const RangePlan& plan_;
  const std::vector<RangeOutput>& outputs_;
  SpareThread spare_;           // Empty once it was asked.
  std::shared_ptr<Work> work_;  // Null: not asked for.
};

}  // namespace tacho::server::query
