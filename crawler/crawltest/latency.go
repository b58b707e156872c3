package crawltest

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// Latency is how long a site takes to answer. The zero Latency means at once.
type Latency struct {
	Base   time.Duration // before each answer
	Jitter time.Duration // the upper limit of a random addition to Base
	PerMB  time.Duration // for each 1,000,000 bytes of the body, while it is sent
	Seed   uint64        // the jitter is a function of Seed, host, path and NthForURL
}

// headerDelay returns the time before the answer to r.
func (l Latency) headerDelay(r PageRequest) time.Duration {
	if l.Jitter <= 0 {
		return l.Base
	}
	h := fnv.New64a()
	h.Write([]byte(r.Host + r.Path))
	rnd := rand.New(rand.NewPCG(l.Seed^h.Sum64(), uint64(r.NthForURL)))
	return l.Base + time.Duration(rnd.Int64N(int64(l.Jitter)))
}

// bodyDuration returns the time to send a body of size bytes.
func (l Latency) bodyDuration(size int) time.Duration {
	return time.Duration(float64(l.PerMB) * float64(size) / 1e6)
}
