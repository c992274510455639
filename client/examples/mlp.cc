#include "client/examples/mlp.h"

#include <cmath>
#include <numbers>
#include <random>

namespace tacho::example {
namespace {

constexpr float kMomentum = 0.9F;

// out = weights * in + biases; the parameters of a layer lie as weights, then biases.
template <size_t kIn, size_t kOut>
void Linear(const float* layer, const std::array<float, kIn>& in, std::array<float, kOut>* out) {
  const float* biases = layer + kIn * kOut;
  for (size_t o = 0; o < kOut; ++o) {
    float sum = biases[o];
    for (size_t i = 0; i < kIn; ++i) sum += layer[o * kIn + i] * in[i];
    (*out)[o] = sum;
  }
}

// Adds to the layer's gradients, and gives the gradient of its input.
template <size_t kIn, size_t kOut>
void LinearBackward(const float* layer, const std::array<float, kIn>& in,
                    const std::array<float, kOut>& out_gradient, float* gradients,
                    std::array<float, kIn>* in_gradient) {
  in_gradient->fill(0.0F);
  for (size_t o = 0; o < kOut; ++o) {
    const float g = out_gradient[o];
    for (size_t i = 0; i < kIn; ++i) {
      gradients[o * kIn + i] += g * in[i];
      (*in_gradient)[i] += g * layer[o * kIn + i];
    }
    gradients[kIn * kOut + o] += g;
  }
}

template <size_t kSize>
void Tanh(std::array<float, kSize>* values) {
  for (float& value : *values) value = std::tanh(value);
}

template <size_t kSize>
void TanhBackward(const std::array<float, kSize>& out, std::array<float, kSize>* gradient) {
  for (size_t i = 0; i < kSize; ++i) (*gradient)[i] *= 1.0F - out[i] * out[i];
}

constexpr size_t LayerSize(size_t in, size_t out) { return in * out + out; }

}  // namespace

Mlp::Mlp(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto add_layer = [&](size_t in, size_t out, float gain) {
    // Keeps the variance of what passes through about the same from layer to layer.
    std::normal_distribution<float> weight(0.0F, gain / std::sqrt(float(in)));
    for (size_t i = 0; i < in * out; ++i) parameters_.push_back(weight(random));
    parameters_.insert(parameters_.end(), out, 0.0F);
  };
  add_layer(kInputs, kHidden, 3.0F);  // Wide: the spirals turn within a small radius.
  add_layer(kHidden, kHidden, 1.5F);
  add_layer(kHidden, 1, 1.0F);
  gradients_.resize(parameters_.size());
  velocity_.resize(parameters_.size());
}

Mlp::Activations Mlp::Forward(const Point& point) const {
  Activations at;
  at.input = {point.x, point.y};
  const float* layer = parameters_.data();
  Linear(layer, at.input, &at.hidden1);
  Tanh(&at.hidden1);
  layer += LayerSize(kInputs, kHidden);
  Linear(layer, at.hidden1, &at.hidden2);
  Tanh(&at.hidden2);
  layer += LayerSize(kHidden, kHidden);
  std::array<float, 1> out;
  Linear(layer, at.hidden2, &out);
  at.logit = out[0];
  return at;
}

void Mlp::Backward(const Activations& at, float logit_gradient) {
  constexpr size_t kSecond = LayerSize(kInputs, kHidden);
  constexpr size_t kThird = kSecond + LayerSize(kHidden, kHidden);
  const std::array<float, 1> out_gradient = {logit_gradient};
  std::array<float, kHidden> gradient2;
  LinearBackward(&parameters_[kThird], at.hidden2, out_gradient, &gradients_[kThird], &gradient2);
  TanhBackward(at.hidden2, &gradient2);
  std::array<float, kHidden> gradient1;
  LinearBackward(&parameters_[kSecond], at.hidden1, gradient2, &gradients_[kSecond], &gradient1);
  TanhBackward(at.hidden1, &gradient1);
  std::array<float, kInputs> unused;
  LinearBackward(parameters_.data(), at.input, gradient1, gradients_.data(), &unused);
}

Mlp::StepResult Mlp::TrainStep(std::span<const Point> batch, double learning_rate) {
  gradients_.assign(gradients_.size(), 0.0F);
  const float scale = 1.0F / static_cast<float>(batch.size());
  StepResult result;
  for (const Point& point : batch) {
    const Activations at = Forward(point);
    const float probability = 1.0F / (1.0F + std::exp(-at.logit));
    // log(1 + exp(z)) - label * z, in the form that does not overflow.
    const double z = at.logit;
    result.loss += std::max(z, 0.0) - point.label * z + std::log1p(std::exp(-std::abs(z)));
    Backward(at, scale * (probability - static_cast<float>(point.label)));
  }
  result.loss *= scale;
  result.gradient_norm = Update(learning_rate);
  return result;
}

double Mlp::Update(double learning_rate) {
  const auto rate = static_cast<float>(learning_rate);
  double squares = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    squares += double{gradients_[i]} * gradients_[i];
    velocity_[i] = kMomentum * velocity_[i] - rate * gradients_[i];
    parameters_[i] += velocity_[i];
  }
  return std::sqrt(squares);
}

double Mlp::Accuracy(std::span<const Point> points) const {
  size_t right = 0;
  for (const Point& point : points) {
    right += (Forward(point).logit > 0.0F) == (point.label == 1) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(points.size());
}

std::vector<Point> MakeSpirals(int count, uint64_t seed) {
  constexpr float kTurns = 1.5F;
  constexpr float kNoise = 0.02F;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> along(0.08F, 1.0F);
  std::normal_distribution<float> noise(0.0F, kNoise);
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    const int label = i % 2;
    const float t = std::sqrt(along(random));  // As dense outside as inside.
    const float angle =
        2.0F * std::numbers::pi_v<float> * kTurns * t + std::numbers::pi_v<float> * float(label);
    const float x = t * std::cos(angle) + noise(random);
    const float y = t * std::sin(angle) + noise(random);
    points.push_back({x, y, label});
  }
  return points;
}

}  // namespace tacho::example
