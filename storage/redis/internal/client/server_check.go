package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// minMajorVersion is the lowest major version of Redis that a store works with: older servers refuse
// scripts that write after they have read the clock.
const minMajorVersion = 7

// checkServers returns an error if a master does not meet the requirements of a store with the given
// durability. It skips servers that do not answer: the others know their state in the cluster, and
// checkMasterSuitable asks for that.
func checkServers(ctx context.Context, nodes map[string]rueidis.Client, durability string) error {
	masters := 0
	var silent []error // the errors of servers that do not answer
	for addr, node := range nodes {
		info, err := readServerInfo(ctx, node)
		// An error that is not the server's own reply means that there was no reply.
		if _, answers := rueidis.IsRedisErr(err); err != nil && !answers {
			silent = append(silent, fmt.Errorf("%s: %w", addr, err))
			continue
		}
		if err != nil {
			return AsTransient(fmt.Errorf("%s: %w", addr, err))
		}
		if info["role"] != "master" {
			continue
		}
		masters++
		if err := checkMasterSuitable(ctx, node, info, durability); err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
	}
	if masters == 0 {
		return AsTransient(errors.Join(append(silent, errors.New("none of the servers that answer is a master"))...))
	}
	return nil
}

// checkMasterSuitable returns an error that names the first requirement that a master does not meet.
func checkMasterSuitable(ctx context.Context, node rueidis.Client, info map[string]string, durability string) error {
	if err := checkServerVersion(info); err != nil {
		return err
	}
	// A server without noeviction would drop keys of the crawl. An empty policy is not reported.
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		return fmt.Errorf("maxmemory-policy is %s: a server that is short of memory would drop a part of the crawl; "+
			"set it to noeviction", policy)
	}
	if info["cluster_enabled"] == "1" {
		state, err := node.Do(ctx, node.B().ClusterInfo().Build()).ToString()
		if err != nil {
			return err
		}
		if f := parseServerInfo(state); f["cluster_state"] != "ok" {
			return AsTransient(fmt.Errorf("the cluster is in state %s (%s of %s slots are served): repair it first",
				f["cluster_state"], f["cluster_slots_ok"], f["cluster_slots_assigned"]))
		}
	}
	return checkServerDurability(ctx, node, info, durability)
}

// checkServerVersion returns an error if the server is too old. Valkey and Kvrocks report a version of
// their own, beside that of the Redis with which they are compatible.
func checkServerVersion(info map[string]string) error {
	if info["valkey_version"] != "" || info["kvrocks_version"] != "" {
		return nil
	}
	version := info["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < minMajorVersion {
		return fmt.Errorf("version %s of the server is too old: Redis %d.0 or newer is needed", version,
			minMajorVersion)
	}
	return nil
}

// checkServerDurability returns an error if the server cannot give the durability.
func checkServerDurability(ctx context.Context, node rueidis.Client, info map[string]string, durability string) error {
	if durability == DurabilityNone {
		return nil
	}
	if info["connected_slaves"] == "0" {
		return AsTransient(fmt.Errorf("it has no replica, which durability %s needs: add one, or set durability to %s",
			durability, DurabilityNone))
	}
	if durability != DurabilityDisk {
		return nil
	}
	values, err := node.Do(ctx, node.B().ConfigGet().Parameter("appendfsync").Build()).AsStrMap()
	if err != nil {
		return fmt.Errorf("durability %s: %w", DurabilityDisk, err)
	}
	if info["aof_enabled"] != "1" || values["appendfsync"] != "always" {
		return fmt.Errorf("durability %s needs appendonly yes and appendfsync always", DurabilityDisk)
	}
	return nil
}

// readServerInfo returns the fields of INFO, by name.
func readServerInfo(ctx context.Context, node rueidis.Client) (map[string]string, error) {
	text, err := node.Do(ctx, node.B().Info().Section("server", "memory", "replication", "persistence",
		"cluster").Build()).ToString()
	return parseServerInfo(text), err
}

// parseServerInfo parses lines of the form name:value. It skips the prefix "txt:" that marks text in
// RESP3 (verbatim string).
func parseServerInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
