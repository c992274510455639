// A comparison of two attempts, as a collector would send it.
#pragma once

#include <limits>

#include "tests/client/ctl/ctl_reading_fixture.h"

namespace tacho::ctl {

class CtlComparisonTest : public CtlReadingTest {
 protected:
  static void AddPlace(v1::ComparedColumn& column, double avg, double half_band,
                       uint64_t non_finite = 0) {
    column.add_avg(avg);
    column.add_min(avg - half_band);
    column.add_max(avg + half_band);
    column.add_counts(2);
    column.add_non_finite(non_finite);
  }
  static void AddNothing(v1::ComparedColumn& column) {
    const double none = std::numeric_limits<double>::quiet_NaN();
    column.add_avg(none);
    column.add_min(none);
    column.add_max(none);
    column.add_counts(0);
    column.add_non_finite(0);
  }
  static void Summarize(v1::ComparedColumn& column, double avg, double last) {
    v1::ComparedSummary& summary = *column.mutable_summary();
    summary.set_count(3);
    summary.set_min(last);
    summary.set_max(avg + 1);
    summary.set_avg(avg);
    summary.set_last(last);
    summary.set_last_position(200);
    summary.set_shared(2);
  }

  // Compares "bert@0" and "bert@1": loss is 10 % worse with one value that is not finite, accuracy
  // is the same.
  void MakeComparison() {
    fake_.comparison.clear();
    v1::CompareSubjects& subjects = *fake_.comparison.emplace_back().mutable_subjects();
    for (uint32_t i = 0; i < 2; ++i) {
      v1::ComparedSubject& subject = *subjects.add_subjects();
      subject.set_job("bert");
      subject.add_attempts(i);
      subject.set_first_unix_ns(kStart + i * 1000 * kSecond);
      subject.set_last_unix_ns(kStart + (i * 1000 + 300) * kSecond);
      subject.set_first_step(0);
      subject.set_last_step(200);
    }
    v1::AttributeDifference& attribute = *subjects.add_attributes();
    attribute.set_name("learning_rate");
    attribute.add_values("0.1");
    attribute.add_values("<b>0.2|</b>");
    subjects.set_equal_attributes(3);

    v1::CompareMetric& loss = *fake_.comparison.emplace_back().mutable_metric();
    loss.mutable_metric()->set_name("loss");
    loss.mutable_metric()->set_unit("nats");
    for (const int64_t step : {0, 100, 200}) loss.add_positions(step);
    v1::ComparedColumn& first = *loss.add_columns();
    AddPlace(first, 3, 0.5);
    AddPlace(first, 2, 0.25);
    AddPlace(first, 1, 0.125);
    Summarize(first, 2, 1);
    v1::ComparedColumn& second = *loss.add_columns();
    AddPlace(second, 3.5, 0.5);
    AddPlace(second, 2.25, 0.25, 1);
    AddNothing(second);
    Summarize(second, 2.875, 2.25);
    for (const double difference : {0.5, 0.25}) second.add_difference(difference);
    second.add_difference(std::numeric_limits<double>::quiet_NaN());
    v1::ComparedSummary& summary = *second.mutable_summary();
    summary.set_non_finite(1);
    summary.set_mean_difference(0.375);
    summary.set_max_difference(0.5);
    summary.set_relative_difference(0.1);

    v1::CompareMetric& accuracy = *fake_.comparison.emplace_back().mutable_metric();
    accuracy.mutable_metric()->set_name("accuracy");
    for (const int64_t step : {0, 100}) accuracy.add_positions(step);
    for (int i = 0; i < 2; ++i) {
      v1::ComparedColumn& column = *accuracy.add_columns();
      AddPlace(column, 0.5, 0);
      AddPlace(column, 0.75, 0);
      Summarize(column, 0.625, 0.75);
      if (i > 0) {
        column.add_difference(0);
        column.add_difference(0);
      }
    }
  }
};

}  // namespace tacho::ctl
