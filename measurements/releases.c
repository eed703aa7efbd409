/* One release of a plan, request by request, as serving/release has it: limits of a key, pairs,
   percentiles, the capital of each guardrail with every key left out in turn, the controller's
   rules. `python -m measurements.releases check FILE` compares it with the product. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { ERRORS, REFUSALS, FIRST_TOKEN, SECONDS, TOKENS, QUALITY, GUARDRAILS };
enum { PROMOTED, ROLLED_BACK, UNDECIDED };
#define KEYS 41
#define HOSTILE 40
#define BETS 12
#define RING 1024 /* items that wait for a partner: at most 10 * (99 + 1) + 1 */
#define RECENT 16384 /* requests since the oldest of them */
#define NEWEST 500
#define FEWEST 20

typedef struct {
    int steps, min_pairs, max_pairs, look; /* look: requests between two looks of the controller */
    double share[8], bake_s, watch_s, max_days, key_share, level, alpha, slow_ratio, bets[BETS];
    double margin[GUARDRAILS], high[GUARDRAILS];
} Plan;

typedef struct { /* attack: version whose tests the hostile key lets fail, 0 without such a key */
    long seed;
    int attack;
    double rate, failed, declined, fails[2]; /* fails: share of each version's failed tests */
} Traffic;

typedef struct {
    double arm, fails, first_token_s, total_s; /* arm, fails: uniform draws */
    int tokens, key, error; /* error: 1 for the engine's, 2 for a declined answer */
} Request;

/* One output of SplitMix64 (Steele, Lea and Flood 2014), for each request and column. */
static double uniform(const Traffic *traffic, long number, int column) {
    uint64_t z = ((uint64_t)traffic->seed << 32) + (number << 4) + column + 1;
    z *= 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return ((z ^ (z >> 31)) >> 11) * 0x1p-53 + 0x1p-54;
}

static double gamma_of_4(const Traffic *traffic, long number, int column) {
    double product = 1;
    for (int i = 0; i < 4; i++) product *= uniform(traffic, number, column + i);
    return -log(product);
}

void draw(const Traffic *traffic, long number, Request *request) {
    double error = uniform(traffic, number, 2), from = uniform(traffic, number, 3);
    int hostile = traffic->attack && from < 0.5;
    request->arm = uniform(traffic, number, 0), request->fails = uniform(traffic, number, 1);
    request->error = error < traffic->failed + traffic->declined ? 1 + (error >= traffic->failed) : 0;
    request->key = hostile ? HOSTILE : (int)(from * (1 << 20)) % HOSTILE;
    request->first_token_s = 0.02 * gamma_of_4(traffic, number, 4);
    request->total_s = 0.2 * gamma_of_4(traffic, number, 8);
    request->tokens = 50 * gamma_of_4(traffic, number, 12);
}

typedef struct { int counted[KEYS], total, kinds; } Limit;
typedef struct { int item[RING], head, size; long at[RING]; } Queue;
typedef struct { Limit limit[2]; Queue rare, others; long seen; } Stream;
typedef struct { double newest[NEWEST], sorted[NEWEST]; int size, head; } Percentile;
typedef double Capital[2][BETS]; /* logarithms: of "worse by more than the margin", of less */
typedef struct { Capital total, share[KEYS]; int count, lacking[KEYS]; } Evidence;

static int admits(Limit *limit, int key, double most) {
    int own = limit->counted[key];
    double share = fmax(most, 2.0 / (limit->kinds ? limit->kinds : 1));
    if (own >= 10 && own < limit->total && own >= share * limit->total) return 0;
    limit->kinds += !own, limit->counted[key]++, limit->total++;
    return 1;
}

static void push(Queue *queue, long at, int item) {
    int place = (queue->head + queue->size++) % RING;
    queue->at[place] = at, queue->item[place] = item;
}

static int pop(Queue *queue) {
    int item = queue->item[queue->head];
    queue->head = (queue->head + 1) % RING, queue->size--;
    return item;
}

static double limit_of(const Percentile *times) {
    int size = times->size, place = 19 * (size + 1) / 20;
    if (size < FEWEST) return -1;
    if (place > size - 1) place = size - 1;
    int rest = 19 * (size + 1) - 20 * place;
    return (times->sorted[place - 1] * (20 - rest) + times->sorted[place] * rest) / 20;
}

static int place_of(const Percentile *times, double value) { /* of the first one that is as large */
    int low = 0, high = times->size;
    while (low < high) {
        int middle = (low + high) / 2;
        if (times->sorted[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
}

static void learn(Percentile *times, double value) {
    if (times->size == NEWEST) {
        int gone = place_of(times, times->newest[times->head]);
        times->size--;
        memmove(times->sorted + gone, times->sorted + gone + 1,
                (times->size - gone) * sizeof(double));
    }
    int place = place_of(times, value);
    memmove(times->sorted + place + 1, times->sorted + place,
            (times->size - place) * sizeof(double));
    times->sorted[place] = value, times->size++;
    times->newest[times->head] = value, times->head = (times->head + 1) % NEWEST;
}

static void logs(const Plan *plan, int guardrail, double difference, Capital found) {
    static Capital known[GUARDRAILS][3]; /* of -1, 0 and 1, the values of nearly all pairs */
    static char is_known[GUARDRAILS][3];
    int place = difference == -1 ? 0 : difference == 0 ? 1 : difference == 1 ? 2 : -1;
    if (place >= 0 && is_known[guardrail][place]) {
        memcpy(found, known[guardrail][place], sizeof(Capital));
        return;
    }
    double high = plan->high[guardrail], x = (difference + high) / (2 * high);
    double mean = (plan->margin[guardrail] + high) / (2 * high);
    for (int bet = 0; bet < BETS; bet++) {
        found[0][bet] = log1p(plan->bets[bet] * (x / mean - 1));
        found[1][bet] = log1p(plan->bets[bet] * ((1 - x) / (1 - mean) - 1));
    }
    if (place < 0) return;
    memcpy(known[guardrail][place], found, sizeof(Capital)), is_known[guardrail][place] = 1;
}

/* values, keys: of the rarer version's request, then of the others; sign: 1 if the challenger is
   the rarer one */
static void bet(const Plan *plan, int guardrail, Evidence *evidence, const double *values,
                const int *keys, int ratio, int sign) {
    Capital whole, left;
    double sum = 0;
    for (int i = 1; i <= ratio; i++) sum += values[i];
    logs(plan, guardrail, sign * (values[0] - sum / ratio), whole);
    for (int side = 0; side < 2; side++)
        for (int b = 0; b < BETS; b++) evidence->total[side][b] += whole[side][b];
    evidence->count++;
    char done[KEYS] = {0};
    for (int i = 0; i <= ratio; i++) {
        int key = keys[i], own = 0;
        if (done[key]++) continue;
        double rest = sum;
        for (int j = 1; j <= ratio; j++)
            if (keys[j] == key) own++, rest -= values[j];
        int gone = keys[0] == key || own == ratio;
        if (gone) evidence->lacking[key]++;
        else logs(plan, guardrail, sign * (values[0] - rest / (ratio - own)), left);
        for (int side = 0; side < 2; side++)
            for (int b = 0; b < BETS; b++)
                evidence->share[key][side][b] += whole[side][b] - (gone ? 0 : left[side][b]);
    }
}

static int at_least(const Evidence *evidence, int side, int key, double level) { /* key: or -1 */
    double most, sum = 0, path[BETS];
    for (int b = 0; b < BETS; b++)
        path[b] = evidence->total[side][b] - (key < 0 ? 0 : evidence->share[key][side][b]);
    most = path[0];
    for (int b = 1; b < BETS; b++) most = path[b] > most ? path[b] : most;
    if (most < -log(level)) return 0; /* the mean of the bets is no larger than the best one */
    for (int b = 0; b < BETS; b++) sum += exp(path[b] - most);
    return exp(-(most + log(sum) - log(BETS))) <= level;
}

static int shown(const Evidence *evidence, int side, double level) {
    if (!at_least(evidence, side, -1, level)) return 0;
    for (int key = KEYS - 1; key >= 0; key--) /* the hostile one first */
        if (!at_least(evidence, side, key, level)) return 0;
    return 1;
}

static int independent(const Evidence *evidence) {
    int most = 0;
    for (int key = 0; key < KEYS; key++)
        if (evidence->lacking[key] > most) most = evidence->lacking[key];
    return evidence->count - most;
}

static double ratio_p_value(int units[8][2], const double *share, int steps) {
    double total = 0;
    for (int step = 0; step < steps; step++) {
        double shares[2] = {1 - share[step], share[step]};
        if (!(units[step][0] + units[step][1])) continue;
        total += lgamma(100) - lgamma(100 + units[step][0] + units[step][1]);
        for (int arm = 0; arm < 2; arm++)
            total += lgamma(100 * shares[arm] + units[step][arm]) - lgamma(100 * shares[arm]) -
                     units[step][arm] * log(shares[arm]);
    }
    return fmin(1, exp(-total));
}

/* Return how the release ends. sent: requests until then. */
int release_of(const Plan *plan, const Traffic *traffic, int *sent) {
    static Stream streams[2]; /* of all requests, of those that did not fail */
    static Evidence evidence[GUARDRAILS];
    static Percentile times[2]; /* until the first token, of the whole answer */
    static double values[GUARDRAILS][RING];
    static Request recent[RECENT];
    static const int own_of[2][4] = {{ERRORS, QUALITY}, {FIRST_TOKEN, SECONDS, REFUSALS, TOKENS}};
    int units[8][2] = {{0}}, step = 0, pairs = 0, keys[RING];
    char is_new[GUARDRAILS] = {0}; /* evidence since the last look */
    double since = 0;
    memset(streams, 0, sizeof streams), memset(evidence, 0, sizeof evidence);
    memset(times, 0, sizeof times);
    for (int i = 0;;) {
        Request *request = &recent[i % RECENT];
        draw(traffic, i, request);
        double share = plan->share[step];
        int arm = request->arm < share, ratio = round(1 / fmin(share, 1 - share)) - 1;
        int sign = share <= 0.5 ? 1 : -1;
        units[step][arm]++;
        for (int s = 0; s < 2; s++) {
            Stream *stream = &streams[s];
            if (s && request->error == 1) continue;
            if (!admits(&stream->limit[arm], request->key, plan->key_share)) continue;
            push(arm == (sign > 0) ? &stream->rare : &stream->others, stream->seen, 2 * i + arm);
            Queue *both[2] = {&stream->rare, &stream->others};
            for (int q = 0; q < 2; q++)
                while (both[q]->size &&
                       stream->seen - both[q]->at[both[q]->head] > 10 * (ratio + 1)) pop(both[q]);
            stream->seen++;
            if (!stream->rare.size || stream->others.size < ratio) continue;
            for (int place = 0; place <= ratio; place++) {
                int item = pop(place ? &stream->others : &stream->rare), own = item % 2;
                const Request *one = &recent[item / 2 % RECENT];
                keys[place] = one->key;
                values[ERRORS][place] = one->error == 1;
                values[REFUSALS][place] = one->error == 2;
                values[TOKENS][place] = fmin(one->tokens, plan->high[TOKENS]);
                values[QUALITY][place] = one->key == HOSTILE ? own + 1 == traffic->attack
                                                             : one->fails < traffic->fails[own];
                values[FIRST_TOKEN][place] = one->first_token_s;
                values[SECONDS][place] = one->total_s;
            }
            for (int g = 0; g < (s ? 4 : 2); g++) {
                int guardrail = own_of[s][g], timed = s && g < 2;
                double *own = values[guardrail], limit = timed ? limit_of(&times[g]) : 0;
                for (int place = 0; timed && place <= ratio; place++) {
                    int champion = (place == 0) != (sign > 0);
                    if (champion) learn(&times[g], own[place]);
                    own[place] = own[place] > (champion ? 1 : plan->slow_ratio) * limit;
                }
                if (limit < 0) continue;
                bet(plan, guardrail, &evidence[guardrail], own, keys, ratio, sign);
                is_new[guardrail] = 1;
            }
            if (!s) pairs++;
        }
        if (++i % plan->look) continue;
        double now = i / traffic->rate;
        int watch = step == plan->steps - 1, decides = step == plan->steps - 2;
        *sent = i;
        for (int g = 0; g < GUARDRAILS; g++)
            if (is_new[g] && shown(&evidence[g], 0, plan->level)) return ROLLED_BACK;
        memset(is_new, 0, sizeof is_new);
        int over = now - since >= (watch ? plan->watch_s : plan->bake_s) &&
                   (watch || pairs >= plan->min_pairs);
        if (over && watch) return PROMOTED;
        for (int g = GUARDRAILS - 1; over && decides && g >= 0; g--) /* first that of the tests */
            if (independent(&evidence[g]))
                over = shown(&evidence[g], 1, plan->alpha) && evidence[g].count >= plan->min_pairs;
        if (over && decides) over = ratio_p_value(units, plan->share, plan->steps) > 0.001;
        if (over) {
            step++, since = now, pairs = 0;
            for (int s = 0; s < 2; s++)
                streams[s].seen = streams[s].rare.size = streams[s].others.size = 0;
        } else if (!watch &&
                   (now > plan->max_days * 86400 || (decides && pairs >= plan->max_pairs)))
            return UNDECIDED;
    }
}
