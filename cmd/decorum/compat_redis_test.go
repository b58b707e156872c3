package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon"
	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// TestCompatRedis restores the keys that a killed crawl left in Redis into a server, and continues the
// crawl. The leases of the dead process expire first.
func TestCompatRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("the command and Redis are separate processes")
	}
	t.Parallel()
	cluster := redistest.StartClusterForTest(t, 1, 0)
	p := unpackOldState(t, "redis")
	restoreRedisKeys(t, p, cluster.Nodes()[0])
	project := p.writeRedisProject(t, cluster.Addrs()[0])
	web := readWeb(t, p.killedAt)
	s := startWebServers(t, web)
	restart := time.Now()
	// Until the leases of the dead process expire, the crawl makes no visit, and export rejects the
	// state.
	args := append(s.resumeArgs(p), "-c", project)
	runCommand(t, s, daemon.ExitStopped, append(args, "--max-time=3s")...) // the last --max-time counts
	before := readExport(t, runCommand(t, nil, daemon.ExitDone, "frontier", "export", "--data", p.path("data")))
	checkAllStates(t, before)
	runCommand(t, s, daemon.ExitStopped, append(args, "--max-time=15s")...)
	log := web.Log()
	judgeRequests(t, web, p.requestLog, log, restart)
	checkFrozenHost(t, log)
	after := readExport(t, runCommand(t, nil, daemon.ExitDone, "frontier", "export", "--data", p.path("data")))
	checkNothingLost(t, before, after, countRequests(log))
	checkOutputLines(t, p)
	runCommand(t, nil, daemon.ExitDone, "ledger", "verify", "--data", p.path("data"))
}

// restoreRedisKeys restores the keys of the killed crawl.
func restoreRedisKeys(t *testing.T, p oldState, n *redistest.Node) {
	t.Helper()
	var keys map[string][]byte
	if err := json.Unmarshal(readFile(t, p.path("dump.json")), &keys); err != nil || len(keys) == 0 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for name, value := range keys {
		if _, err := n.Do(t.Context(), "RESTORE", name, "0", string(value)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// writeRedisProject writes the project with the address of this test's server, both to the file that
// it returns and into the data directory, as an operator does after moving Redis.
func (p oldState) writeRedisProject(t *testing.T, addr string) string {
	t.Helper()
	text := string(readFile(t, "testdata/past/project.yaml")) +
		fmt.Sprintf("store: {redis: {addresses: ['%s'], partitions: 4, durability: none, lease: 2s}}\n", addr)
	file := p.path("project.yaml")
	for _, name := range []string{file, p.path("data", "crawl.yaml")} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// checkAllStates checks that the restored state has URLs in every state, so that the test covers all.
func checkAllStates(t *testing.T, x frontierExport) {
	t.Helper()
	states := map[string]int{}
	for _, u := range x.urls {
		states[u.State]++
		if u.Sent {
			states["sent"]++
		}
	}
	for _, want := range []string{"queued", "resting", "parked", "sent"} {
		if states[want] == 0 {
			t.Errorf("no URL is %s", want)
		}
	}
}
