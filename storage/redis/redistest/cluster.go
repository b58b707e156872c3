// Package redistest runs a Redis Cluster of local processes, for tests and benchmarks.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds how long a cluster may take to be ready.
const startTimeout = 30 * time.Second

// A Cluster is servers on a loopback address.
type Cluster struct {
	t     testing.TB // nil if it was not started for a test
	dir   string
	ip    string
	nodes []*Node
}

// A Node is one server of a Cluster.
type Node struct {
	Addr    string
	port    int
	busPort int // where servers of a cluster talk to each other
	dir     string
	args    []string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process has ended
}

// errNoLoopback says that there is no address to be had that nobody else uses.
var errNoLoopback = errors.New("this system has one loopback address")

// StartClusterForTest starts a cluster as StartCluster does, for a test: its servers are killed when that
// ends. The test is skipped where redis-server is not installed.
func StartClusterForTest(t testing.TB, masters, replicas int, settings ...string) *Cluster {
	t.Helper()
	c, err := StartCluster(t.Context(), t.TempDir(), masters, replicas, settings...)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, errNoLoopback):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	c.t = t
	t.Cleanup(c.KillAll)
	return c
}

// StartCluster starts a cluster of so many masters, each with so many replicas, and waits
// until all of it is in order. Its files are in dir. settings are given to every
// server, as on its command line. Stop must be called in the end. Kill, Restart, Wait
// and AwaitMasters are for clusters that StartClusterForTest started.
func StartCluster(ctx context.Context, dir string, masters, replicas int, settings ...string) (*Cluster, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("apt-get install redis-server: %w", err)
	}
	ip, err := randomLoopbackIP()
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, ip: ip}
	for i := range masters * (1 + replicas) {
		n := c.newUnstartedNode(program, i, settings)
		c.nodes = append(c.nodes, n)
		if err = os.Mkdir(n.dir, 0o700); err == nil {
			err = n.start()
		}
		if err != nil {
			c.KillAll()
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.formCluster(ctx, masters); err != nil {
		c.KillAll()
		return nil, fmt.Errorf("cluster: %w\n%s", err, c.logs())
	}
	return c, nil
}

// The ports of the first server; those of the others follow.
const (
	firstPort    = 7000
	firstBusPort = 17000
)

// newUnstartedNode prepares the i-th server.
func (c *Cluster) newUnstartedNode(program string, i int, settings []string) *Node {
	port := firstPort + i
	n := &Node{Addr: net.JoinHostPort(c.ip, strconv.Itoa(port)), port: port, busPort: firstBusPort + i, dir: filepath.Join(c.dir, strconv.Itoa(i))}
	n.args = append([]string{
		program, "--port", strconv.Itoa(port), "--cluster-port", strconv.Itoa(n.busPort), "--bind", c.ip,
		"--dir", n.dir, "--logfile", "log", "--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
		"--cluster-announce-ip", c.ip, "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
		"--save", "", "--appendonly", "yes", "--appendfsync", "no", "--cluster-allow-replica-migration", "no",
	}, settings...)
	return n
}

// randomLoopbackIP returns a loopback address that most likely nobody else uses: so no
// port of it is taken, not even by a connection to elsewhere.
func randomLoopbackIP() (string, error) {
	ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254))
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoLoopback, err)
	}
	return ip, l.Close()
}

// start starts the process of the server.
func (n *Node) start() error {
	n.cmd = exec.Command(n.args[0], n.args[1:]...)
	if err := n.cmd.Start(); err != nil {
		n.cmd = nil
		return err
	}
	n.exited = make(chan struct{})
	go func(cmd *exec.Cmd, gone chan struct{}) {
		cmd.Wait() // a server that was killed returns an error, which is as it should be
		close(gone)
	}(n.cmd, n.exited)
	return nil
}

// formCluster makes one cluster of the servers: the first ones are masters.
func (c *Cluster) formCluster(ctx context.Context, masters int) error {
	for _, n := range c.nodes {
		if err := retryUntilDone(ctx, func() error { _, err := n.Do(ctx, "PING"); return err }); err != nil {
			return err
		}
	}
	for i, n := range c.nodes[:masters] {
		first, last := i*16384/masters, (i+1)*16384/masters-1
		if _, err := n.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
			return err
		}
		if _, err := n.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	for _, n := range c.nodes[1:] {
		bus := strconv.Itoa(n.busPort)
		if _, err := c.nodes[0].Do(ctx, "CLUSTER", "MEET", c.ip, strconv.Itoa(n.port), bus); err != nil {
			return err
		}
	}
	for i, n := range c.nodes[masters:] {
		if err := c.makeReplicaOf(ctx, n, c.nodes[i%masters]); err != nil {
			return err
		}
	}
	return retryUntilDone(ctx, func() error { return c.checkReady(ctx) })
}

func (c *Cluster) makeReplicaOf(ctx context.Context, n, master *Node) error {
	id, err := master.Do(ctx, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	return retryUntilDone(ctx, func() error { _, err := n.Do(ctx, "CLUSTER", "REPLICATE", id); return err })
}

// checkReady returns an error unless every server knows all others, thinks the cluster
// is in order, and, if it is a replica, has caught up.
func (c *Cluster) checkReady(ctx context.Context) error {
	for _, n := range c.nodes {
		if n.cmd == nil {
			continue
		}
		info, err := n.Do(ctx, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(c.nodes))) {
			return fmt.Errorf("%s: not in order: %s", n.Addr, info)
		}
		repl, err := n.Do(ctx, "INFO", "replication")
		if err != nil {
			return err
		}
		if strings.Contains(repl, "role:slave") && !strings.Contains(repl, "master_link_status:up") {
			return fmt.Errorf("%s: the replica has not caught up", n.Addr)
		}
	}
	return nil
}

// retryUntilDone calls do until it returns no error or ctx is done.
func retryUntilDone(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Addrs returns the addresses of the servers.
func (c *Cluster) Addrs() (addrs []string) {
	for _, n := range c.nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// Nodes returns the servers; those that StartClusterForTest made masters are first.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// KillAll kills all servers.
func (c *Cluster) KillAll() {
	for _, n := range c.nodes {
		if n.cmd != nil {
			n.cmd.Process.Kill() // it may have ended before
			<-n.exited
		}
	}
}

func (c *Cluster) logs() string {
	var b strings.Builder
	for _, n := range c.nodes {
		log, err := os.ReadFile(filepath.Join(n.dir, "log"))
		fmt.Fprintf(&b, "%s (%v):\n%.4000s\n", n.Addr, err, log)
	}
	return b.String()
}
