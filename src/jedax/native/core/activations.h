// The activations of hidden layers.
#pragma once

namespace jedax {

enum Activation { kRelu, kTanh, kSigmoid, kElu, kGelu, kSilu, kNumActivations };
constexpr const char* kActivationNames[] = {"relu", "tanh", "sigmoid", "elu", "gelu", "silu"};

}  // namespace jedax
