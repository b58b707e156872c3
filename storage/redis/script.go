package redis

import (
	"context"
	"errors"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// newScriptCommand returns the call of a script, by its name or with its text.
func (s *Store) newScriptCommand(sc *lua.Script, withText bool, p *partition, args []string) rueidis.Completed {
	if withText {
		return s.client.B().Eval().Script(sc.Text).Numkeys(1).Key(p.keyPrefix).Arg(args...).Build()
	}
	return s.client.B().Evalsha().Sha1(sc.SHA1).Numkeys(1).Key(p.keyPrefix).Arg(args...).Build()
}

// tryScript calls a script once. The first argument, the time, is put before args.
func (s *Store) tryScript(ctx context.Context, p *partition, sc *lua.Script, args ...string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	args = append([]string{s.scriptClock.nowArg()}, args...)
	m, err := s.client.Do(ctx, s.newScriptCommand(sc, false, p, args)).ToMessage()
	if isScriptMissing(err) {
		m, err = s.client.Do(ctx, s.newScriptCommand(sc, true, p, args)).ToMessage()
	}
	return m, err
}

// A scriptCall is what is asked of one partition.
type scriptCall struct {
	*partition
	args []string
}

// callsToPartitions returns calls that are the same for some partitions.
func callsToPartitions(partitions []*partition, args ...string) []scriptCall {
	calls := make([]scriptCall, len(partitions))
	for i, p := range partitions {
		calls[i] = scriptCall{p, args}
	}
	return calls
}

// A scriptReply is what came of a call.
type scriptReply struct {
	message rueidis.RedisMessage
	err     error
}

// tryScriptCalls makes calls of a script once, those to a server in one go.
func (s *Store) tryScriptCalls(ctx context.Context, sc *lua.Script, calls []scriptCall) []scriptReply {
	if len(calls) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	replies := make([]scriptReply, len(calls))
	for i, result := range s.client.DoMulti(limited, s.newScriptCommands(sc, calls)...) {
		a := &replies[i]
		if a.message, a.err = result.ToMessage(); isScriptMissing(a.err) {
			a.message, a.err = s.tryScript(ctx, calls[i].partition, sc, calls[i].args...)
		}
	}
	return replies
}

// newScriptCommands returns calls of a script by its name.
func (s *Store) newScriptCommands(sc *lua.Script, calls []scriptCall) []rueidis.Completed {
	now := s.scriptClock.nowArg()
	commands := make([]rueidis.Completed, len(calls))
	for i, c := range calls {
		commands[i] = s.newScriptCommand(sc, false, c.partition, append([]string{now}, c.args...))
	}
	return commands
}

// errNotReplicated says that what was done may be lost with a server.
var errNotReplicated = errors.New("no replica has confirmed it")

// tryScriptDurably is try for what must not be lost: it returns an error unless that is
// where Options.Durability wants it. WAIT speaks of the connection that it comes
// by, which so is the one of the script: a redirection to another server is an error.
func (s *Store) tryScriptDurably(ctx context.Context, p *partition, sc *lua.Script, args ...string) (m rueidis.RedisMessage, err error) {
	if s.opts.Durability == DurabilityNone {
		return s.tryScript(ctx, p, sc, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	args = append([]string{s.scriptClock.nowArg()}, args...)
	err = s.client.Dedicated(func(c rueidis.DedicatedClient) error {
		for _, withText := range []bool{false, true} {
			replies := c.DoMulti(ctx, append([]rueidis.Completed{s.newScriptCommand(sc, withText, p, args)}, s.replicaWaitCommands(p)...)...)
			if m, err = replies[0].ToMessage(); isScriptMissing(err) {
				continue
			}
			if err != nil {
				return err
			}
			return checkReplicated(replies[1:])
		}
		return err
	})
	return m, err
}

// replicaWaitCommands returns commands that wait until a replica has what the server of a partition has
// by now. WAIT, since Redis 7.2, waits for what its own connection wrote, and a call may
// find all done that others are still waiting for: so something is written in any case.
func (s *Store) replicaWaitCommands(p *partition) []rueidis.Completed {
	write := s.client.B().Hset().Key(p.keyPrefix+"m").FieldValue().FieldValue("waits", "1").Build()
	return []rueidis.Completed{write, s.client.B().Wait().Numreplicas(1).Timeout(s.opts.Timeout.Milliseconds() / 2).Build()}
}

// checkReplicated returns an error unless wait was answered by a replica.
func checkReplicated(replies []rueidis.RedisResult) error {
	written := replies[0].Error()
	if n, err := replies[1].AsInt64(); written != nil || err != nil || n < 1 {
		return errors.Join(errNotReplicated, written, err)
	}
	return nil
}

// isScriptMissing reports whether the server does not know the script.
func isScriptMissing(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsNoScript()
}
