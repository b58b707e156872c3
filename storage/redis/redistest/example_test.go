package redistest_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// TestMain skips the examples, which cannot skip themselves, where StartCluster cannot work.
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

// A benchmark that is not a test starts its cluster with StartCluster.
func ExampleStartCluster() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "redistest")
	check(err)
	defer os.RemoveAll(dir)
	c, err := redistest.StartCluster(ctx, dir, 1, 0)
	check(err)
	defer c.KillAll()

	reply, err := c.Nodes()[0].Do(ctx, "PING")
	check(err)
	fmt.Println(reply, c.Nodes()[0].IsMaster(ctx))
	// Output: PONG true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
