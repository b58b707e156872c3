package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// redis runs and kills a crawl in Redis, and dumps the keys.
func (g *generator) redis() (err error) {
	ctx := context.Background()
	servers := filepath.Join(g.temp, "servers")
	if err := os.Mkdir(servers, 0o700); err != nil {
		return err
	}
	cluster, err := redistest.StartCluster(ctx, servers, 1, 0)
	if err != nil {
		return err
	}
	defer cluster.KillAll()
	var projects []string
	for _, name := range []string{"project-first.yaml", "project.yaml"} {
		text, err := os.ReadFile(filepath.Join(g.dir, name))
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "store: {redis: {addresses: ['%s'], partitions: 4, durability: none, lease: 2s}}\n",
			cluster.Addrs()[0])
		projects = append(projects, filepath.Join(g.temp, "redis-"+name))
		if err := os.WriteFile(projects[len(projects)-1], text, 0o600); err != nil {
			return err
		}
	}
	dir := filepath.Join(g.temp, "redis")
	l, err := g.start("redis")
	if err != nil {
		return err
	}
	killed, err := g.runTwice(l, projects[0], projects[1], "--data", filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	if err := dump(ctx, cluster.Nodes()[0], filepath.Join(dir, "dump.json")); err != nil {
		return err
	}
	return g.save("redis", dir, killed, l.web)
}

// dump writes the keys of a server, with the result of DUMP for each.
func dump(ctx context.Context, n *redistest.Node, file string) error {
	names, err := n.Do(ctx, "EVAL", "return table.concat(redis.call('KEYS', '*'), '\\n')", "0")
	if err != nil {
		return err
	}
	keys := map[string][]byte{}
	for name := range strings.SplitSeq(names, "\n") {
		value, err := n.Do(ctx, "DUMP", name)
		if err != nil {
			return err
		}
		if value == "" {
			return errors.New(name + " is gone")
		}
		keys[name] = []byte(value)
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
