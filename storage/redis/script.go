package redis

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/redis/rueidis"
)

//go:embed lua/*.lua
var files embed.FS

// A script is a verb. Servers know it by its SHA-1 once they have seen it.
type script struct{ text, sha string }

// The verbs: each file says what it takes and returns.
var (
	addScript          = load("add")
	leaseScript        = load("lease")
	announceScript     = load("record_lease_ttl")
	ackScript          = load("ack")
	lookScript         = load("summary")
	oweScript          = load("confirm_due")
	renewScript        = load("renew_lease")
	markScript         = load("mark_sent")
	undoScript         = load("return_leases")
	holdScript         = load("hold")
	noteScript         = load("set_note")
	restingScript      = load("awaiting_revisit")
	recallScript       = load("reschedule")
	parkedScript       = load("read_parked")
	reviveScript       = load("unpark")
	knownScript        = load("has_seen")
	seenScript         = load("list_seen")
	infoScript         = load("origin_info")
	linesScript        = load("list_queues")
	queueRecordsScript = load("queue_records")
	importScript       = load("import")
	postScript         = load("set_shared_value")
	boardScript        = load("get_shared_values")
	musterScript       = load("heartbeat")
	admitScript        = load("admit_hosts")

	hostCountScript = load("host_count")
)

// load puts a verb together with what all verbs share.
func load(verb string) *script {
	var text strings.Builder
	for _, name := range []string{"common", "lanes", "schedule", "seen_set", verb} {
		part, err := files.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // it is part of the program
		}
		text.Write(part)
	}
	sum := sha1.Sum([]byte(text.String()))
	return &script{text.String(), hex.EncodeToString(sum[:])}
}

// command returns the call of a script, by its name or with its text.
func (s *Store) command(sc *script, whole bool, p *partition, args []string) rueidis.Completed {
	if whole {
		return s.client.B().Eval().Script(sc.text).Numkeys(1).Key(p.base).Arg(args...).Build()
	}
	return s.client.B().Evalsha().Sha1(sc.sha).Numkeys(1).Key(p.base).Arg(args...).Build()
}

// try calls a script once. The first argument, the time, is put before args.
func (s *Store) try(ctx context.Context, p *partition, sc *script, args ...string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	args = append([]string{s.clock.now()}, args...)
	m, err := s.client.Do(ctx, s.command(sc, false, p, args)).ToMessage()
	if isMissing(err) {
		m, err = s.client.Do(ctx, s.command(sc, true, p, args)).ToMessage()
	}
	return m, err
}

// A call is what is asked of one partition.
type call struct {
	*partition
	args []string
}

// callsTo returns calls that are the same for some partitions.
func callsTo(some []*partition, args ...string) []call {
	calls := make([]call, len(some))
	for i, p := range some {
		calls[i] = call{p, args}
	}
	return calls
}

// An answer is what came of a call.
type answer struct {
	message rueidis.RedisMessage
	err     error
}

// tryAll makes calls of a script once, those to a server in one go.
func (s *Store) tryAll(ctx context.Context, sc *script, calls []call) []answer {
	if len(calls) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	answers := make([]answer, len(calls))
	for i, result := range s.client.DoMulti(limited, s.commands(sc, calls)...) {
		a := &answers[i]
		if a.message, a.err = result.ToMessage(); isMissing(a.err) {
			a.message, a.err = s.try(ctx, calls[i].partition, sc, calls[i].args...)
		}
	}
	return answers
}

// commands returns calls of a script by its name.
func (s *Store) commands(sc *script, calls []call) []rueidis.Completed {
	now := s.clock.now()
	commands := make([]rueidis.Completed, len(calls))
	for i, c := range calls {
		commands[i] = s.command(sc, false, c.partition, append([]string{now}, c.args...))
	}
	return commands
}

// errUnsafe says that what was done may be lost with a server.
var errUnsafe = errors.New("no replica has confirmed it")

// trySafely is try for what must not be lost: it returns an error unless that is
// where Options.Durability wants it. WAIT speaks of the connection that it comes
// by, which so is the one of the script: a redirection to another server is an error.
func (s *Store) trySafely(ctx context.Context, p *partition, sc *script, args ...string) (m rueidis.RedisMessage, err error) {
	if s.opts.Durability == None {
		return s.try(ctx, p, sc, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	args = append([]string{s.clock.now()}, args...)
	err = s.client.Dedicated(func(c rueidis.DedicatedClient) error {
		for _, whole := range []bool{false, true} {
			answers := c.DoMulti(ctx, append([]rueidis.Completed{s.command(sc, whole, p, args)}, s.wait(p)...)...)
			if m, err = answers[0].ToMessage(); isMissing(err) {
				continue
			}
			if err != nil {
				return err
			}
			return confirmed(answers[1:])
		}
		return err
	})
	return m, err
}

// wait returns commands that wait until a replica has what the server of a partition has
// by now. WAIT, since Redis 7.2, waits for what its own connection wrote, and a call may
// find all done that others are still waiting for: so something is written in any case.
func (s *Store) wait(p *partition) []rueidis.Completed {
	write := s.client.B().Hset().Key(p.base+"m").FieldValue().FieldValue("waits", "1").Build()
	return []rueidis.Completed{write, s.client.B().Wait().Numreplicas(1).Timeout(s.opts.Timeout.Milliseconds() / 2).Build()}
}

// confirmed returns an error unless wait was answered by a replica.
func confirmed(answers []rueidis.RedisResult) error {
	written := answers[0].Error()
	if n, err := answers[1].AsInt64(); written != nil || err != nil || n < 1 {
		return errors.Join(errUnsafe, written, err)
	}
	return nil
}

// isMissing reports whether the server does not know the script.
func isMissing(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsNoScript()
}
