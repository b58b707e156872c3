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

// startTimeout is how long a cluster may take to become ready.
const startTimeout = 30 * time.Second

// A Cluster is a Redis Cluster of local processes on one loopback address.
type Cluster struct {
	t     testing.TB // nil if StartCluster started it
	dir   string     // has a directory for each server
	ip    string     // the loopback address of all servers
	nodes []*Node    // masters first
}

// A Node is one server of a Cluster.
type Node struct {
	Addr    string // host:port for clients
	port    int
	busPort int           // for the other servers of the cluster
	dir     string        // files of the server
	args    []string      // command line, program included
	cmd     *exec.Cmd     // nil while the server does not run
	exited  chan struct{} // closed when the process has ended
}

// errNoLoopback is returned where 127.x.y.z is not a loopback address for every x, y and z.
var errNoLoopback = errors.New("cannot listen on a random loopback address")

// StartClusterForTest starts a cluster as StartCluster does, in a temporary directory, and kills its
// servers when the test ends. It skips the test if redis-server is not installed.
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

// StartCluster starts a cluster with the given number of masters, and of replicas for each master. It
// returns when all servers are ready, and fails after 30 s. The servers' files are in dir. settings are
// added to the command line of each server. The caller must call KillAll. KillNode, StartKilledNode,
// WaitReady and AwaitMasters are only for clusters that StartClusterForTest started. The error wraps
// exec.ErrNotFound if redis-server is not installed.
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
		c.nodes = append(c.nodes, n) // so that KillAll below kills those that run
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

// Ports of the first server. The i-th server has these ports plus i.
const (
	firstPort    = 7000
	firstBusPort = 17000
)

// newUnstartedNode returns the i-th server, which does not run yet.
func (c *Cluster) newUnstartedNode(program string, i int, settings []string) *Node {
	port := firstPort + i
	n := &Node{Addr: net.JoinHostPort(c.ip, strconv.Itoa(port)), port: port, busPort: firstBusPort + i,
		dir: filepath.Join(c.dir, strconv.Itoa(i))}
	// Failures are detected after 1 s, and replicas follow at once, so that tests of failovers are
	// short. The append-only file lets a killed server restart with its data.
	n.args = append([]string{
		program, "--port", strconv.Itoa(port), "--cluster-port", strconv.Itoa(n.busPort), "--bind", c.ip,
		"--dir", n.dir, "--logfile", "log", "--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
		"--cluster-announce-ip", c.ip, "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
		"--save", "", "--appendonly", "yes", "--appendfsync", "no", "--cluster-allow-replica-migration", "no",
	}, settings...)
	return n
}

// randomLoopbackIP returns a random loopback address. Hardly any other process uses it, so all its
// ports are free, also of outgoing connections.
func randomLoopbackIP() (string, error) {
	ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254))
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoLoopback, err)
	}
	return ip, l.Close()
}

// start starts the process of the server, and a goroutine that waits for its end.
func (n *Node) start() error {
	n.cmd = exec.Command(n.args[0], n.args[1:]...)
	if err := n.cmd.Start(); err != nil {
		n.cmd = nil
		return err
	}
	n.exited = make(chan struct{})
	go func(cmd *exec.Cmd, gone chan struct{}) {
		cmd.Wait() // always an error, since tests kill their servers
		close(gone)
	}(n.cmd, n.exited)
	return nil
}

// formCluster joins the servers to one cluster: the first ones are masters, the others replicas.
func (c *Cluster) formCluster(ctx context.Context, masters int) error {
	// Wait until all servers answer.
	for _, n := range c.nodes {
		if err := retryUntilDone(ctx, func() error { _, err := n.Do(ctx, "PING"); return err }); err != nil {
			return err
		}
	}
	// Divide the slots among the masters. Different epochs spare them an election.
	for i, n := range c.nodes[:masters] {
		first, last := i*16384/masters, (i+1)*16384/masters-1
		if _, err := n.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
			return err
		}
		if _, err := n.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	// Introduce all servers to the first one, then tell each replica its master.
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

// makeReplicaOf makes n a replica of master. It repeats the command until n knows the master.
func (c *Cluster) makeReplicaOf(ctx context.Context, n, master *Node) error {
	id, err := master.Do(ctx, "CLUSTER", "MYID")
	if err != nil {
		return err
	}
	return retryUntilDone(ctx, func() error { _, err := n.Do(ctx, "CLUSTER", "REPLICATE", id); return err })
}

// checkReady returns an error unless every running server knows all others, reports the cluster as ok,
// and, if it is a replica, has caught up with its master.
func (c *Cluster) checkReady(ctx context.Context) error {
	for _, n := range c.nodes {
		if n.cmd == nil { // killed
			continue
		}
		info, err := n.Do(ctx, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") ||
			!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(c.nodes))) {
			return fmt.Errorf("%s: the cluster is not ready: %s", n.Addr, info)
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

// retryUntilDone calls do every 20 ms until it returns nil or ctx is done.
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

// Addrs returns the addresses of all servers, as host:port.
func (c *Cluster) Addrs() (addrs []string) {
	for _, n := range c.nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// Nodes returns the servers. Those that were masters at the start come first.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// KillAll kills all servers and waits for their end.
func (c *Cluster) KillAll() {
	for _, n := range c.nodes {
		if n.cmd != nil {
			n.cmd.Process.Kill() // an error means that it has ended already
			<-n.exited
		}
	}
}

// logs returns the beginning of each server's log, for failure messages.
func (c *Cluster) logs() string {
	var b strings.Builder
	for _, n := range c.nodes {
		log, err := os.ReadFile(filepath.Join(n.dir, "log"))
		fmt.Fprintf(&b, "%s (%v):\n%.4000s\n", n.Addr, err, log)
	}
	return b.String()
}
