// The default names of each signal: those of this project, then those of frameworks and exporters.
// Each row is a list in one string, because the names matter and not their quotes.
#include <vector>

#include "absl/strings/str_split.h"
#include "server/conditions/window/signal_names.h"

namespace tacho::server::conditions {
namespace {

struct Row {
  Signal signal;
  double factor;
  absl::string_view names;  // The best first.
};

// clang-format off
constexpr Row kRows[] = {
    // Ours, Hugging Face, Keras, MLPerf.
    {Signal::kLoss, 1,
     "loss train_loss training_loss loss_train loss_training train_training_loss"},
    // Megatron, NeMo, DeepSpeed, torchtitan, MaxText, Composer, OLMo.
    {Signal::kLoss, 1,
     "lm_loss lm_loss_training reduced_train_loss train_samples_train_loss "
     "loss_metrics_global_avg_loss learning_loss loss_train_total train_crossentropyloss "
     "train_ce_loss"},
    // Lightning, Keras, logs of (modded-)nanoGPT.
    {Signal::kLoss, 1, "train_loss_step batch_loss train_loss_epoch epoch_loss trl"},
    {Signal::kEvalLoss, 1,
     "eval_loss val_loss valid_loss validation_loss evaluation_loss loss_eval loss_val "
     "loss_valid loss_validation test_loss loss_test"},
    // Megatron, MaxText, torchtitan, Keras, Lightning, logs of modded-nanoGPT.
    {Signal::kEvalLoss, 1,
     "lm_loss_validation evaluation_avg_loss eval_avg_loss validation_metrics_loss "
     "epoch_val_loss val_loss_epoch tel"},
    // Hugging Face with several data sets.
    {Signal::kEvalLoss, 1, "eval_*_loss"},
    {Signal::kAccuracy, 1,
     "accuracy train_accuracy training_accuracy accuracy_train acc train_acc training_acc "
     "acc_train batch_accuracy batch_acc train_acc_step train_accuracy_step train_acc_epoch "
     "train_accuracy_epoch epoch_accuracy epoch_acc train_acc_top1 train_accuracy_top1 "
     "sparse_categorical_accuracy categorical_accuracy binary_accuracy "
     "epoch_sparse_categorical_accuracy"},
    {Signal::kEvalAccuracy, 1,
     "eval_accuracy val_accuracy valid_accuracy validation_accuracy test_accuracy eval_acc "
     "val_acc valid_acc validation_acc test_acc accuracy_eval accuracy_val acc_val "
     "epoch_val_accuracy epoch_val_acc val_accuracy_epoch val_acc_epoch val_acc_top1 "
     "val_accuracy_top1 val_sparse_categorical_accuracy val_categorical_accuracy "
     "val_binary_accuracy eval_*_accuracy"},
    {Signal::kLearningRate, 1,
     "learning_rate lr train_learning_rate train_lr train_samples_lr current_learning_rate "
     "learning_current_learning_rate epoch_learning_rate epoch_lr optim_learning_rate"},
    // Lightning's LearningRateMonitor, Composer, OLMo: one for each group.
    {Signal::kLearningRate, 1, "lr_* optim_learning_rate_* learning_rate_group*"},
    // Before clipping first: MaxText has both.
    {Signal::kGradNorm, 1,
     "learning_raw_grad_norm raw_grad_norm unclipped_grad_norm grad_norm gradient_norm "
     "grads_norm global_grad_norm gradient_global_norm grad_global_norm train_grad_norm "
     "learning_grad_norm"},
    // OLMo, Composer, levanter, Lightning, logs of modded-nanoGPT.
    {Signal::kGradNorm, 1,
     "optim_total_grad_norm optim_grad_norm_total_grad_norm l2_norm_grad_global "
     "grad_norm_total grad_2_0_norm_total norm"},
    {Signal::kParamNorm, 1,
     "param_norm params_norm parameter_norm parameters_norm weight_norm weights_norm "
     "global_param_norm train_param_norm learning_param_norm params_norm_total"},
    {Signal::kUpdateNorm, 1,
     "update_norm updates_norm global_update_norm train_update_norm learning_update_norm "
     "updates_norm_total l2_norm_update_global"},
    {Signal::kStepTime, 1,
     "step_time_seconds step_time step_time_s step_seconds seconds_per_step sec_per_step "
     "perf_step_time_seconds train_step_time_seconds"},
    // Megatron, NeMo, torchtitan, levanter.
    {Signal::kStepTime, 1,
     "iteration_time iteration_time_s iteration_time_seconds iter_time iter_time_seconds "
     "train_step_timing train_step_timing_in_s time_metrics_end_to_end_s throughput_duration"},
    {Signal::kStepTime, 1e-3,
     "step_time_ms step_time_milliseconds iteration_time_ms iter_time_ms dt_ms"},
    {Signal::kDataWait, 1,
     "data_wait_seconds data_wait data_wait_time data_wait_s data_time data_time_seconds "
     "data_loading_seconds data_loading_time dataloader_time data_load_seconds "
     "input_wait_seconds time_metrics_data_loading_s throughput_loading_time"},
    {Signal::kDataWait, 1e-3, "data_wait_ms"},
    {Signal::kCompute, 1,
     "compute_seconds compute_time compute_time_seconds compute_s forward_backward_seconds"},
    {Signal::kCompute, 1e-3, "compute_ms"},
    {Signal::kCommWait, 1,
     "comm_wait_seconds comm_wait comm_wait_time comm_seconds communication_seconds "
     "collective_wait_seconds allreduce_seconds all_reduce_seconds"},
    {Signal::kCommWait, 1e-3, "comm_wait_ms"},
    {Signal::kCheckpointTime, 1,
     "checkpoint_seconds checkpoint_time_seconds checkpoint_save_seconds "
     "save_checkpoint_seconds checkpoint_time"},
    {Signal::kEvalTime, 1,
     "eval_seconds eval_time_seconds evaluation_seconds eval_time eval_runtime"},
    {Signal::kTokens, 1,
     "tokens tokens_total total_tokens tokens_seen num_tokens_seen train_tokens_total "
     "consumed_tokens n_tokens_seen num_input_tokens_seen throughput_total_tokens"},
    {Signal::kExamples, 1,
     "examples examples_total total_examples examples_seen samples_total samples_seen "
     "consumed_samples consumed_train_samples trained_samples"},
    {Signal::kReplicaScalar, 1,
     "replica_scalar replica_checksum weights_checksum weight_checksum param_checksum "
     "params_checksum parameter_checksum grad_checksum model_checksum"},
    {Signal::kChipBusy, 1, "chip_duty_cycle_ratio"},
    // libtpu, its SDK, GKE.
    {Signal::kChipBusy, 0.01,
     "tpu_runtime_tensorcore_dutycycle_percent duty_cycle_pct duty_cycle duty_cycle_node "
     "kubernetes_io_container_accelerator_duty_cycle "
     "kubernetes_io_node_accelerator_duty_cycle"},
    // DCGM, nvidia_gpu_exporter.
    {Signal::kChipBusy, 1, "dcgm_fi_prof_gr_engine_active"},
    {Signal::kChipBusy, 0.01, "dcgm_fi_dev_gpu_util"},
    {Signal::kChipBusy, 1, "nvidia_smi_utilization_gpu_ratio"},
    {Signal::kChipTensorBusy, 1, "chip_tensor_active_ratio"},
    {Signal::kChipTensorBusy, 0.01,
     "tensorcore_util tensorcore_utilization tensorcore_utilization_node "
     "kubernetes_io_container_accelerator_tensorcore_utilization "
     "kubernetes_io_node_accelerator_tensorcore_utilization"},
    {Signal::kChipTensorBusy, 1, "dcgm_fi_prof_pipe_tensor_active"},
    {Signal::kChipIdleSeconds, 1, "chip_idle_seconds tpu_runtime_tensorcore_idle_duration_seconds"},
    // DCGM counts in MiB.
    {Signal::kHbmUsed, 1,
     "chip_hbm_used_bytes tpu_runtime_hbm_memory_usage_bytes hbm_capacity_usage "
     "kubernetes_io_container_accelerator_memory_used "
     "kubernetes_io_node_accelerator_memory_used"},
    {Signal::kHbmUsed, 1048576, "dcgm_fi_dev_fb_used"},
    {Signal::kHbmUsed, 1, "nvidia_smi_memory_used_bytes"},
    {Signal::kHbmTotal, 1,
     "chip_hbm_total_bytes tpu_runtime_hbm_memory_total_bytes hbm_capacity_total "
     "kubernetes_io_container_accelerator_memory_total "
     "kubernetes_io_node_accelerator_memory_total"},
    {Signal::kHbmTotal, 1048576, "dcgm_fi_dev_fb_total"},
    {Signal::kHbmTotal, 1, "nvidia_smi_memory_total_bytes"},
    {Signal::kChipPower, 1,
     "chip_power_watts dcgm_fi_dev_power_usage nvidia_smi_power_draw_watts "
     "nvidia_smi_power_draw_average_watts"},
    {Signal::kChipPowerLimit, 1,
     "chip_power_limit_watts dcgm_fi_dev_enforced_power_limit dcgm_fi_dev_power_mgmt_limit "
     "nvidia_smi_enforced_power_limit_watts nvidia_smi_power_limit_watts"},
    {Signal::kChipTemperature, 1,
     "chip_temperature_celsius dcgm_fi_dev_gpu_temp nvidia_smi_temperature_gpu"},
    {Signal::kChipClock, 1, "chip_clock_hertz"},
    {Signal::kChipClock, 1e6, "dcgm_fi_dev_sm_clock"},
    {Signal::kChipClock, 1, "nvidia_smi_clocks_current_sm_clock_hz"},
    {Signal::kChipClockMax, 1, "chip_clock_max_hertz"},
    {Signal::kChipClockMax, 1e6, "dcgm_fi_dev_max_sm_clock"},
    {Signal::kChipClockMax, 1, "nvidia_smi_clocks_max_sm_clock_hz"},
    {Signal::kThrottleReasons, 1,
     "chip_throttle_reasons dcgm_fi_dev_clock_throttle_reasons "
     "dcgm_fi_dev_clocks_event_reasons nvidia_smi_clocks_event_reasons_active "
     "tpu_throttle_score"},
    {Signal::kEccUncorrected, 1,
     "chip_ecc_uncorrected_total dcgm_fi_dev_ecc_dbe_vol_total "
     "nvidia_smi_ecc_errors_uncorrected_volatile_total"},
    {Signal::kEccCorrected, 1,
     "chip_ecc_corrected_total dcgm_fi_dev_ecc_sbe_vol_total "
     "nvidia_smi_ecc_errors_corrected_volatile_total"},
    // DCGM's is the code of the last error: only that it changed counts.
    {Signal::kXid, 1, "chip_xid_errors_total dcgm_fi_dev_xid_errors"},
    {Signal::kLinkErrors, 1,
     "chip_link_errors_total dcgm_fi_dev_nvlink_crc_flit_error_count_total "
     "dcgm_fi_dev_nvlink_crc_data_error_count_total "
     "dcgm_fi_dev_nvlink_replay_error_count_total "
     "dcgm_fi_dev_nvlink_recovery_error_count_total"},
    {Signal::kRemappedRows, 1,
     "chip_remapped_rows_total dcgm_fi_dev_uncorrectable_remapped_rows "
     "dcgm_fi_dev_correctable_remapped_rows nvidia_smi_remapped_rows_uncorrectable "
     "nvidia_smi_remapped_rows_correctable"},
    {Signal::kHostMemoryAvailable, 1, "host_memory_available_bytes node_memory_memavailable_bytes"},
    {Signal::kHostMemoryTotal, 1, "host_memory_total_bytes node_memory_memtotal_bytes"},
    {Signal::kHostCpuBusy, 1, "host_cpu_utilization_ratio"},
    {Signal::kInputStage, 1, "input_stage_*_seconds"},
    {Signal::kCollective, 1, "collective_seconds collective_*_seconds"},
    {Signal::kCollectiveBytes, 1, "collective_bytes collective_*_bytes"},
};
// clang-format on

std::vector<DefaultName> AllNames() {
  std::vector<DefaultName> all;
  for (const Row& row : kRows) {
    for (const absl::string_view name : absl::StrSplit(row.names, ' ')) {
      all.push_back({row.signal, name, row.factor});
    }
  }
  return all;
}

}  // namespace

absl::Span<const DefaultName> DefaultNames() {
  static const auto& kNames = *new std::vector<DefaultName>(AllNames());
  return kNames;
}

}  // namespace tacho::server::conditions
