// barnes: a galaxy of bodies that attract each other, by a tree that is built anew in each step, with threads.
//
// Pattern   Every body, cell and leaf of the octree is a block of its own (96, 104 and 72 bytes). A step builds the
//           tree of the bodies' new places, each thread some of 64 parts of space; a full leaf becomes a cell, and its
//           bodies move to new leaves. Then all threads walk all of the tree for their bodies' forces. The parts change
//           hands from step to step: who builds a part frees the cells of the step before, which another thread
//           allocated.
// Idea      J. Barnes, P. Hut, "A Hierarchical O(N log N) Force-Calculation Algorithm" (Nature 324, 1986); with threads
//           one of the SPLASH-2 programs (S. Woo and others, 1995). Most of the time goes to walking the tree: the
//           layout of the blocks counts, less the speed of malloc.
// Check     The bodies in the tree, in each step; the drift of the total momentum and energy. The forces on a body are
//           summed in the order of the tree, which does not depend on threads or addresses.
// Usage     barnes [THREADS = 2] [BODIES = 16384] [STEPS = 20]
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include "bench.h"

#define LEAF_BODIES 4
#define PARTS       64   // two levels of the tree
#define DEPTH_MAX   64   // bodies that close would be at the same place
#define OPENING     1.0  // a cell counts as one body where its width is less than this part of its distance
#define SOFTENING   0.05 // forces do not grow any more within this distance
#define TIME_STEP   0.025

typedef struct vector_s {
  double x, y, z;
} vector_t;

typedef struct body_s {
  vector_t       place, velocity, force; // force per mass
  double         mass, potential;
  struct body_s* next; // of its part, in this step
} body_t;

typedef struct node_s {
  bool     is_leaf;
  uint32_t count; // of the bodies in a leaf
  double   mass;
  vector_t center; // of the mass
} node_t;

typedef struct cell_s {
  node_t  node;
  node_t* children[8]; // or NULL
} cell_t;

typedef struct leaf_s {
  node_t  node;
  body_t* bodies[LEAF_BODIES];
} leaf_t;

// Written by the first thread between two barriers, or each element by the thread that has its part or body.
static size_t            n_threads, n_bodies, n_steps;
static body_t**          bodies;
static vector_t          space_center;
static double            space_half; // of the width
static body_t*           part_bodies[PARTS];
static node_t*           parts[PARTS]; // or NULL
static size_t            part_counts[PARTS];
static cell_t*           root;
static double            energy_first, energy_last;
static pthread_barrier_t barrier;

// ---- vectors

static vector_t vector_add(vector_t a, vector_t b, double times) {
  return (vector_t){a.x + b.x * times, a.y + b.y * times, a.z + b.z * times};
}

static double vector_square(vector_t a) {
  return a.x * a.x + a.y * a.y + a.z * a.z;
}

// ---- the tree

// Which eighth of the cube around the center: one bit for each axis.
static size_t octant_of(vector_t place, vector_t center) {
  return (size_t)(place.x >= center.x) | (size_t)(place.y >= center.y) << 1 | (size_t)(place.z >= center.z) << 2;
}

static vector_t octant_center(vector_t center, double half, size_t octant) {
  double quarter = half / 2;
  return (vector_t){
      center.x + ((octant & 1) != 0 ? quarter : -quarter),
      center.y + ((octant & 2) != 0 ? quarter : -quarter),
      center.z + ((octant & 4) != 0 ? quarter : -quarter),
  };
}

static cell_t* cell_new(void) {
  cell_t* cell = bench_not_null(malloc(sizeof(cell_t)));
  memset(cell, 0, sizeof(cell_t));
  return cell;
}

static leaf_t* leaf_new(void) {
  leaf_t* leaf = bench_not_null(malloc(sizeof(leaf_t)));
  leaf->node.is_leaf = true;
  leaf->node.count = 0;
  return leaf;
}

// Puts the body below *place, which stands for the cube around the center.
static void tree_insert(node_t** place, body_t* body, vector_t center, double half, size_t depth) {
  for (;; depth++) {
    if (depth > DEPTH_MAX) bench_fail("two bodies at the same place");
    if (*place == NULL) *place = &leaf_new()->node;
    if ((*place)->is_leaf) {
      leaf_t* leaf = (leaf_t*)*place;
      if (leaf->node.count < LEAF_BODIES) {
        leaf->bodies[leaf->node.count++] = body;
        return;
      }
      *place = &cell_new()->node;
      for (size_t i = 0; i < LEAF_BODIES; i++) tree_insert(place, leaf->bodies[i], center, half, depth);
      free(leaf);
    }
    size_t octant = octant_of(body->place, center);
    place = &((cell_t*)*place)->children[octant];
    center = octant_center(center, half, octant);
    half /= 2;
  }
}

// The mass and its center, from those of the bodies or children.
static void node_weigh(node_t* node) {
  double   mass = 0;
  vector_t sum = {0, 0, 0};
  for (size_t i = 0; node->is_leaf && i < node->count; i++) {
    const body_t* body = ((leaf_t*)node)->bodies[i];
    mass += body->mass;
    sum = vector_add(sum, body->place, body->mass);
  }
  for (size_t i = 0; !node->is_leaf && i < 8; i++) {
    const node_t* child = ((cell_t*)node)->children[i];
    if (child == NULL) continue;
    mass += child->mass;
    sum = vector_add(sum, child->center, child->mass);
  }
  node->mass = mass;
  node->center = vector_add((vector_t){0, 0, 0}, sum, 1 / mass);
}

// Weighs all nodes; gives the number of bodies.
static size_t tree_weigh(node_t* node) {
  if (node == NULL) return 0;
  size_t count = node->is_leaf ? node->count : 0;
  for (size_t i = 0; !node->is_leaf && i < 8; i++) count += tree_weigh(((cell_t*)node)->children[i]);
  node_weigh(node);
  return count;
}

static void tree_free(node_t* node) {
  if (node == NULL) return;
  if (!node->is_leaf) {
    for (size_t i = 0; i < 8; i++) tree_free(((cell_t*)node)->children[i]);
  }
  free(node);
}

// ---- forces

static void body_attract(body_t* body, vector_t place, double mass) {
  vector_t way = vector_add(place, body->place, -1);
  double   square = vector_square(way) + SOFTENING * SOFTENING;
  double   potential = mass / sqrt(square);
  body->potential -= potential;
  body->force = vector_add(body->force, way, potential / square);
}

static void body_attract_by(body_t* body, const node_t* node, double width) {
  if (node->is_leaf) {
    const leaf_t* leaf = (const leaf_t*)node;
    for (size_t i = 0; i < node->count; i++) {
      if (leaf->bodies[i] != body) body_attract(body, leaf->bodies[i]->place, leaf->bodies[i]->mass);
    }
    return;
  }
  double square = vector_square(vector_add(node->center, body->place, -1));
  if (width * width < OPENING * OPENING * square) {
    body_attract(body, node->center, node->mass);
    return;
  }
  for (size_t i = 0; i < 8; i++) {
    const node_t* child = ((const cell_t*)node)->children[i];
    if (child != NULL) body_attract_by(body, child, width / 2);
  }
}

// ---- a step

static double max_of(double a, double b) {
  return a > b ? a : b;
}

// The cube that all bodies are in, and the bodies of each part of it.
static void space_divide(void) {
  double extent = 0;
  for (size_t i = 0; i < n_bodies; i++) {
    vector_t p = bodies[i]->place;
    extent = max_of(extent, max_of(fabs(p.x), max_of(fabs(p.y), fabs(p.z))));
  }
  space_center = (vector_t){0, 0, 0};
  space_half = extent * 1.0001;
  memset(part_bodies, 0, sizeof(part_bodies));
  for (size_t i = 0; i < n_bodies; i++) {
    body_t*  body = bodies[i];
    size_t   octant = octant_of(body->place, space_center);
    vector_t center = octant_center(space_center, space_half, octant);
    size_t   part = octant * 8 + octant_of(body->place, center);
    body->next = part_bodies[part];
    part_bodies[part] = body;
  }
}

static void part_build(size_t part) {
  vector_t outer = octant_center(space_center, space_half, part / 8);
  vector_t center = octant_center(outer, space_half / 2, part % 8);
  tree_free(parts[part]);
  parts[part] = NULL;
  for (body_t* body = part_bodies[part]; body != NULL; body = body->next) {
    tree_insert(&parts[part], body, center, space_half / 4, 2);
  }
  part_counts[part] = tree_weigh(parts[part]);
}

// The two levels above the parts.
static void root_build(void) {
  cell_t* top = cell_new();
  size_t  count = 0;
  for (size_t octant = 0; octant < 8; octant++) {
    size_t octant_count = 0;
    for (size_t i = 0; i < 8; i++) octant_count += part_counts[octant * 8 + i];
    count += octant_count;
    if (octant_count == 0) continue;
    cell_t* cell = cell_new();
    memcpy(cell->children, &parts[octant * 8], sizeof(cell->children));
    node_weigh(&cell->node);
    top->children[octant] = &cell->node;
  }
  if (count != n_bodies) bench_fail("%zu bodies in the tree", count);
  node_weigh(&top->node);
  root = top;
}

// Not the parts.
static void root_free(void) {
  for (size_t octant = 0; octant < 8; octant++) free(root->children[octant]);
  free(root);
}

// The energy of all bodies; their potentials count each pair twice.
static double energy_sum(void) {
  double energy = 0;
  for (size_t i = 0; i < n_bodies; i++) {
    energy += bodies[i]->mass * (vector_square(bodies[i]->velocity) + bodies[i]->potential) / 2;
  }
  return energy;
}

// Leapfrog: velocities move half a step before and after the places move a whole one. They are those of the same time
// as the places between the two halves, which is when the energy is taken.
static void thread_step(size_t index, size_t step) {
  size_t first = n_bodies * index / n_threads, end = n_bodies * (index + 1) / n_threads;
  if (index == 0) space_divide();
  pthread_barrier_wait(&barrier);
  for (size_t part = (index + step) % n_threads; part < PARTS; part += n_threads) part_build(part);
  pthread_barrier_wait(&barrier);
  if (index == 0) root_build();
  pthread_barrier_wait(&barrier);
  for (size_t i = first; i < end; i++) {
    body_t* body = bodies[i];
    body->force = (vector_t){0, 0, 0};
    body->potential = 0;
    body_attract_by(body, &root->node, 2 * space_half);
    if (step > 0) body->velocity = vector_add(body->velocity, body->force, TIME_STEP / 2);
  }
  pthread_barrier_wait(&barrier);
  if (index == 0) {
    root_free();
    if (step == 0) energy_first = energy_sum();
    if (step == n_steps) energy_last = energy_sum();
  }
  pthread_barrier_wait(&barrier);
  if (step == n_steps) return;
  for (size_t i = first; i < end; i++) {
    bodies[i]->velocity = vector_add(bodies[i]->velocity, bodies[i]->force, TIME_STEP / 2);
    bodies[i]->place = vector_add(bodies[i]->place, bodies[i]->velocity, TIME_STEP);
  }
  pthread_barrier_wait(&barrier);
}

static void thread_run(size_t index) {
  for (size_t step = 0; step <= n_steps; step++) thread_step(index, step);
}

// ---- the galaxy: H. Plummer's model, as S. Aarseth, M. Henon and R. Wielen generate it (1974)

static double random_between(uint64_t* random, double min, double max) {
  return min + (max - min) * (double)(bench_random(random) >> 11) * 0x1p-53;
}

static vector_t random_on_sphere(uint64_t* random, double radius) {
  double   square;
  vector_t v;
  do {
    v = (vector_t){random_between(random, -1, 1), random_between(random, -1, 1), random_between(random, -1, 1)};
    square = vector_square(v);
  } while (square > 1 || square < 0.0001);
  return vector_add((vector_t){0, 0, 0}, v, radius / sqrt(square));
}

static body_t* body_new(uint64_t* random) {
  body_t* body = bench_not_null(malloc(sizeof(body_t)));
  memset(body, 0, sizeof(body_t));
  double radius = 1 / sqrt(pow(random_between(random, 0.001, 0.98), -2.0 / 3) - 1);
  double part, density; // of the velocity that a body at this place could escape with
  do {
    part = random_between(random, 0, 1);
    density = random_between(random, 0, 0.1);
  } while (density > part * part * pow(1 - part * part, 3.5));
  body->mass = 1.0 / (double)n_bodies;
  body->place = random_on_sphere(random, radius);
  body->velocity = random_on_sphere(random, part * sqrt(2) / sqrt(sqrt(1 + radius * radius)));
  return body;
}

static vector_t momentum_sum(void) {
  vector_t sum = {0, 0, 0};
  for (size_t i = 0; i < n_bodies; i++) sum = vector_add(sum, bodies[i]->velocity, bodies[i]->mass);
  return sum;
}

static uint64_t double_bits(double a) {
  uint64_t bits;
  memcpy(&bits, &a, sizeof(bits));
  return bits;
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX);
  n_bodies = bench_argument(argc, argv, 2, "BODIES", 16384, 10000000);
  n_steps = bench_argument(argc, argv, 3, "STEPS", 20, SIZE_MAX - 1);
  uint64_t random = bench_random_seed(0);
  bodies = bench_not_null(malloc(n_bodies * sizeof(body_t*)));
  for (size_t i = 0; i < n_bodies; i++) bodies[i] = body_new(&random);
  vector_t momentum = momentum_sum();

  pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
  bench_threads_run(n_threads, &thread_run);

  double energy_drift = fabs(energy_last / energy_first - 1);
  double momentum_drift = sqrt(vector_square(vector_add(momentum_sum(), momentum, -1)));
  if (energy_drift > 0.01) bench_fail("the energy changed by %g", energy_drift);
  if (momentum_drift > 0.01) bench_fail("the momentum changed by %g", momentum_drift);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_bodies; i++) {
    sum = sum * 31 + double_bits(bodies[i]->place.x);
    sum = sum * 31 + double_bits(bodies[i]->place.y);
    sum = sum * 31 + double_bits(bodies[i]->place.z);
    free(bodies[i]);
  }
  free(bodies);
  for (size_t part = 0; part < PARTS; part++) tree_free(parts[part]);
  printf("barnes %zu %zu: %016llx\n", n_bodies, n_steps, (unsigned long long)sum);
  return 0;
}
