// A small neural network for two classes of points in the plane, trained by stochastic gradient
// descent with momentum.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tacho::example {

// A data set that a linear model cannot learn: points on two interleaved spirals, with noise.
struct Point {
  float x = 0;
  float y = 0;
  int label = 0;  // Which spiral.
};

// `count` points drawn with the seed; another seed draws other points of the same two spirals.
std::vector<Point> MakeSpirals(int count, uint64_t seed);

class Mlp {
 public:
  // Weights are drawn with the seed.
  explicit Mlp(uint64_t seed);

  struct StepResult {
    double loss = 0;           // Mean cross-entropy of the batch, nats, before the update.
    double gradient_norm = 0;  // Euclidean norm over all parameters.
  };
  StepResult TrainStep(std::span<const Point> batch, double learning_rate);

  // Share of the points whose label is predicted.
  double Accuracy(std::span<const Point> points) const;

  size_t parameter_count() const { return parameters_.size(); }

 private:
  static constexpr int kInputs = 2;
  static constexpr int kHidden = 32;

  // The outputs of the layers for one point.
  struct Activations {
    std::array<float, kInputs> input;
    std::array<float, kHidden> hidden1;
    std::array<float, kHidden> hidden2;
    float logit = 0;
  };
  Activations Forward(const Point& point) const;
  // Adds the point's gradient, times `scale`, to gradients_.
  void Backward(const Activations& at, float logit_gradient);
  double Update(double learning_rate);

  // All weights and biases, layer after layer, each weights row by row and then biases.
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<float> velocity_;
};

}  // namespace tacho::example
