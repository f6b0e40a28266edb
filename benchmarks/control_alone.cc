// Robots and their policies without JAX, on threads of their own: prints control steps per second and the mean fitness.
//
// control_native.py compiles and calls it: control_alone SETTINGS GENOTYPES STARTS THREADS SECONDS WHAT, with lines
// "name count values" in the first file and float32 in the next two. WHAT: "episodes", or "policy", decisions of 16
// members a thread in turn, without a robot.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "pool.h"

#include "control/fitting.h"
#include "control/settings.h"
#include "control/vectors.cc"

namespace {

using namespace jedax::control;

class Reader {
 public:
  explicit Reader(const char* path) {
    std::ifstream file(path);
    for (std::string name; file >> name;) {
      size_t count;
      file >> count;
      Values& values = given_[name];
      values.floats.resize(count), values.ints.resize(count);
      for (size_t i = 0; i < count; ++i) {
        std::string word;
        file >> word;
        values.floats[i] = std::strtof(word.c_str(), nullptr);
        values.ints[i] = int32_t(values.floats[i]);
      }
    }
  }
  template <class T>
  void number(const char* name, T& to) { to = T(given_.at(name).floats[0]); }
  int choice(const char* name, const char* const*, int) { return given_.at(name).ints[0]; }
  int array(const char* name, const float*& to, int width, int) {
    to = given_.at(name).floats.data();
    return int(given_.at(name).floats.size()) / width;
  }
  int array(const char* name, const int32_t*& to, int width, int) {
    to = given_.at(name).ints.data();
    return int(given_.at(name).ints.size()) / width;
  }

 private:
  struct Values {
    std::vector<float> floats;
    std::vector<int32_t> ints;
  };
  std::map<std::string, Values> given_;
};

std::string bytes_of(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

}  // namespace

int main(int, char** arguments) {
  Reader reader(arguments[1]);
  Model model{};
  Episode episode{};
  read_model(reader, model);
  read_episode(reader, model, episode);
  if (const char* wrong = check(model, episode)) return std::fprintf(stderr, "%s\n", wrong), 1;
  const std::string genotypes = bytes_of(arguments[2]), starts = bytes_of(arguments[3]);
  const int64_t count = int64_t(genotypes.size() / sizeof(float)) / episode.params;
  const int64_t descriptors = episode.feet ? episode.feet : 2;
  const int64_t threads = std::stoi(arguments[4]);
  std::vector<float> fitness(std::max(count, threads)), descriptor(descriptors * count);
  std::vector<int32_t> length(count);
  Work work{};
  work.model = &model, work.episode = &episode;
  work.genotypes = reinterpret_cast<const float*>(genotypes.data());
  work.starts = reinterpret_cast<const float*>(starts.data());
  work.starts_row = 0, work.sharing = 1, work.group = fitting(episode, kLanes);
  work.fitness = fitness.data(), work.descriptor = descriptor.data(), work.length = length.data();
  Pool& pool = *new Pool(threads);
  const bool only_policy = std::strcmp(arguments[6], "policy") == 0;
  constexpr int kMembers = 16, kDecisions = 2000;
  const auto evaluate = [&] {
    jedax::run_on_threads(pool, only_policy ? threads : count, 1, [&](jedax::Queue& queue) {
      if (!only_policy) {
        Work here = work;
        here.queue = &queue;
        run_episodes<jedax::JEDAX_ISA>(here);
        return;
      }
      const int64_t floats = laid_out_weights(episode);
      jedax::Buffer buffer(kMembers * floats + 2 * widest_layer(episode) + 64);
      float *weights = buffer.take(kMembers * floats), *values = buffer.take(2 * widest_layer(episode));
      for (int k = 0; k < kMembers; ++k) lay_out(episode, work.genotypes + k % count * episode.params, weights + k * floats);
      for (int64_t item; jedax::take(queue, 1, item);) {
        float sum = 0;
        for (int step = 0; step < kDecisions; ++step) {
          for (int i = 0; i < episode.layers[0]; ++i) values[i] = 0.1f * float(i);
          sum += decide(episode, weights + step % kMembers * floats, values, values + widest_layer(episode))[0];
        }
        fitness[item] = sum;
      }
    });
  };
  evaluate();
  int64_t steps = threads * kDecisions;
  if (!only_policy) {
    steps = 0;
    for (const int32_t one : length) steps += one;
  }
  double best = 0;
  for (const double until = now() + std::stod(arguments[5]); now() < until;) {
    const double began = now();
    int64_t calls = 0;
    for (; now() - began < 0.02; ++calls) evaluate();
    best = std::max(best, double(calls * steps) / (now() - began));
  }
  double sum = 0;
  for (const float one : fitness) sum += one;
  std::printf("%.9g %.9g\n", best, sum / double(count));
}
