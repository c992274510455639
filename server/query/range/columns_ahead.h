// A second thread for a query that has to decode many columns: it decodes those that the query is
// about to come to, and the store keeps them until then. What the query answers is the same, with
// it or without. It has a view of its own, so the open rows of the series are held twice.
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

// One thread, besides the spare one, of which nobody waits for the end.
class ColumnsAhead {
 public:
  // Without `spare`, nothing is done. The store must outlive what runs on a spare thread; the
  // outputs and the plan, which does not aggregate, this.
  ColumnsAhead(const storage::Store& store, const RangePlan& plan,
               const std::vector<RangeOutput>& outputs, SpareThread spare);
  ~ColumnsAhead();
  ColumnsAhead(const ColumnsAhead&) = delete;
  ColumnsAhead& operator=(const ColumnsAhead&) = delete;

  // The query is about to read outputs[next] and has decoded so many columns itself. Asks for the
  // thread once it is seen that columns are not known, and enough are left.
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
