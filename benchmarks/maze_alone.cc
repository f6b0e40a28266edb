// The maze simulator without JAX, on threads of its own: prints evaluations per second and the mean fitness.
//
// maze_native.py compiles and calls it: maze_alone SETTINGS GENOTYPES THREADS SECONDS, with lines "name count values"
// in the first file and float32 in the second.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "pool.h"

#include "maze/vectors.cc"
#include "maze/walls.cc"

int main(int, char** arguments) {
  std::ifstream file(arguments[1]);
  std::map<std::string, std::vector<float>> given;
  for (std::string name; file >> name;) {
    size_t count;
    file >> count;
    std::vector<float>& values = given[name];
    values.resize(count);
    for (float& value : values) file >> value;
  }
  jedax::Settings s{};
#define READ(name) s.name = given.at(#name)[0]
  READ(steps), READ(start_x), READ(start_y), READ(start_cos), READ(start_sin), READ(target_x), READ(target_y);
  READ(target_radius_squared), READ(distance_weight), READ(robot_radius_squared), READ(wheel_speed), READ(turn);
  READ(laser_range), READ(out_of_range);
  const std::vector<int32_t> layers(given["layers"].begin(), given["layers"].end());
  s.laser_cos = given["laser_cos"].data(), s.laser_sin = given["laser_sin"].data();
  s.lasers = int(given["laser_cos"].size()), s.layers = layers.data(), s.num_layers = int(layers.size());
  for (int i = 0; i + 1 < s.num_layers; ++i) s.params += (layers[i] + 1) * layers[i + 1];
  s.largest = 2 * s.wheel_speed * s.turn;
  const jedax::WallList walls(given["walls"].data(), int64_t(given["walls"].size() / 4), true);

  std::ifstream binary(arguments[2], std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(binary)), std::istreambuf_iterator<char>());
  const int64_t robots = int64_t(bytes.size() / sizeof(float)) / s.params;
  std::vector<float> fitness(robots), descriptor(2 * robots);
  jedax::Work work{};
  work.settings = &s, work.walls = &walls.walls();
  work.genotypes = reinterpret_cast<const float*>(bytes.data());
  work.fitness = fitness.data(), work.descriptor = descriptor.data();
  Pool& pool = *new Pool(std::stoi(arguments[3]));  // never deleted: its threads wait for ever
  const auto evaluate = [&] {
    jedax::run_on_threads(pool, robots, jedax::kWidth, [&](jedax::Queue& queue) {
      jedax::Work here = work;
      here.queue = &queue;
      jedax::evaluate<jedax::JEDAX_ISA>(here);
    });
  };
  double best = 0;
  evaluate();
  for (const double until = now() + std::stod(arguments[4]); now() < until;) {
    const double began = now();
    int64_t calls = 0;
    for (; now() - began < 0.02; ++calls) evaluate();
    best = std::max(best, double(calls * robots) / (now() - began));
  }
  double sum = 0;
  for (const float one : fitness) sum += one;
  std::printf("%.9g %.9g\n", best, sum / double(robots));
}
