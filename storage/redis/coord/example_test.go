package coord_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/storage/redis"
	"github.com/decorum-crawler/decorum/storage/redis/coord"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// TestMain skips the examples, which cannot skip themselves, where redistest cannot start a cluster.
func TestMain(m *testing.M) {
	_, err := exec.LookPath("redis-server")
	if l, listenErr := net.Listen("tcp", "127.77.0.1:0"); listenErr != nil {
		err = listenErr
	} else {
		l.Close()
	}
	if err != nil {
		flag.Set("test.skip", "^Example")
	}
	m.Run()
}

// Two workers share a limit of eight pages.
func ExampleSharedCrawlLimits_Heartbeat() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "coord")
	check(err)
	defer os.RemoveAll(dir)
	c, err := redistest.StartCluster(ctx, dir, 1, 0)
	check(err)
	defer c.KillAll()
	s, err := redis.Open(ctx, redis.Options{Addresses: c.Addrs(), Prefix: "books", Durability: redis.DurabilityNone})
	check(err)
	defer s.Close()

	// A heartbeat gets a quarter of the pages that are left, rounded up.
	for _, worker := range []string{"w1", "w2"} {
		reply, err := s.SharedLimits().Heartbeat(ctx, coord.HeartbeatRequest{
			WorkerName: worker, ExpiresAfter: time.Minute, Joining: true,
			Limits: coord.CrawlLimits{MaxPages: 8}, TotalWantedPages: 100,
		})
		check(err)
		fmt.Printf("%s: %d workers, %d pages granted\n", worker, reply.WorkerCount, reply.GrantedPages)
	}
	// Output:
	// w1: 1 workers, 2 pages granted
	// w2: 2 workers, 2 pages granted
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
