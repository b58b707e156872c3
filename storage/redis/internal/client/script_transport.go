package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A scriptTransport sends calls of scripts to the servers of their partitions, once.
type scriptTransport struct {
	conn           rueidis.Client
	clock          *ScriptClock
	servers        *partitionServers
	timeout        time.Duration
	awaitsReplicas bool // whether a durable call waits until a replica has confirmed it
}

// A ScriptCall is a call of a script on one partition.
type ScriptCall struct {
	*Partition
	Args []string
}

// CallsTo returns a call with the same arguments for each of some partitions.
func CallsTo(partitions []*Partition, args ...string) []ScriptCall {
	calls := make([]ScriptCall, len(partitions))
	for i, p := range partitions {
		calls[i] = ScriptCall{p, args}
	}
	return calls
}

// A scriptReply is the reply to a call, or its error.
type scriptReply struct {
	message Reply
	err     error
}

// try calls a script once. It puts the time before args. If durable is set it returns an error unless
// a replica has confirmed what the script did, where the transport awaits replicas.
func (t *scriptTransport) try(
	ctx context.Context, durable bool, p *Partition, sc *lua.Script, args ...string,
) (Reply, error) {
	if durable && t.awaitsReplicas {
		return t.tryDurably(ctx, p, sc, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	args = append([]string{t.clock.nowArg()}, args...)
	m, err := t.conn.Do(ctx, t.command(sc, false, p, args)).ToMessage()
	if isScriptMissing(err) {
		m, err = t.conn.Do(ctx, t.command(sc, true, p, args)).ToMessage()
	}
	return m, err
}

// tryBatch makes calls of a script once, as try does, those to a server in one go.
func (t *scriptTransport) tryBatch(ctx context.Context, durable bool, sc *lua.Script, calls []ScriptCall) []scriptReply {
	switch {
	case len(calls) == 0:
		return nil
	case durable && t.awaitsReplicas:
		return t.tryAllDurably(ctx, sc, calls)
	}
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	replies := make([]scriptReply, len(calls))
	for i, result := range t.conn.DoMulti(limited, t.commands(sc, calls)...) {
		a := &replies[i]
		if a.message, a.err = result.ToMessage(); isScriptMissing(a.err) {
			a.message, a.err = t.try(ctx, false, calls[i].Partition, sc, calls[i].Args...)
		}
	}
	return replies
}

// command returns the call of a script, by its name or with its text.
func (t *scriptTransport) command(sc *lua.Script, withText bool, p *Partition, args []string) rueidis.Completed {
	if withText {
		return t.conn.B().Eval().Script(sc.Text).Numkeys(1).Key(p.keyPrefix).Arg(args...).Build()
	}
	return t.conn.B().Evalsha().Sha1(sc.SHA1).Numkeys(1).Key(p.keyPrefix).Arg(args...).Build()
}

// commands returns calls of a script by its name.
func (t *scriptTransport) commands(sc *lua.Script, calls []ScriptCall) []rueidis.Completed {
	now := t.clock.nowArg()
	commands := make([]rueidis.Completed, len(calls))
	for i, c := range calls {
		commands[i] = t.command(sc, false, c.Partition, append([]string{now}, c.Args...))
	}
	return commands
}

// isScriptMissing reports whether the server does not know the script.
func isScriptMissing(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsNoScript()
}

// errNotReplicated is returned if what was done may be lost with a server.
var errNotReplicated = errors.New("no replica has confirmed it")

// tryDurably is try for what must not be lost. WAIT speaks of the connection that it
// comes by, which so is the one of the script: a redirection to another server is an error.
func (t *scriptTransport) tryDurably(
	ctx context.Context, p *Partition, sc *lua.Script, args ...string,
) (m Reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	args = append([]string{t.clock.nowArg()}, args...)
	err = t.conn.Dedicated(func(c rueidis.DedicatedClient) error {
		for _, withText := range []bool{false, true} {
			commands := append([]rueidis.Completed{t.command(sc, withText, p, args)}, t.replicaWaitCommands(p)...)
			replies := c.DoMulti(ctx, commands...)
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

// tryAllDurably is tryBatch for what must not be lost: see tryDurably. Calls to one server
// go by one connection, and wait together until a replica has confirmed all of them.
func (t *scriptTransport) tryAllDurably(ctx context.Context, sc *lua.Script, calls []ScriptCall) []scriptReply {
	replies := make([]scriptReply, len(calls))
	for i := range replies {
		replies[i].err = errNotReplicated // if it is not made any more, because ctx is done
	}
	InParallel(ctx, t.servers.groupCalls(ctx, calls), func(g *callsForServer) error {
		t.tryGroupDurably(ctx, sc, calls, g, replies)
		return nil // each call has an error of its own
	})
	return replies
}

// tryGroupDurably makes the calls of a group. The client takes a connection of its own for
// what waits, and sends all of it by that.
func (t *scriptTransport) tryGroupDurably(
	ctx context.Context, sc *lua.Script, calls []ScriptCall, g *callsForServer, replies []scriptReply,
) {
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	if g.node != nil {
		groupCalls := make([]ScriptCall, len(g.indexes))
		for k, i := range g.indexes {
			groupCalls[k] = calls[i]
		}
		commands := append(t.commands(sc, groupCalls), t.replicaWaitCommands(groupCalls[0].Partition)...)
		results := g.node.DoMulti(limited, commands...)
		notReplicated := checkReplicated(results[len(groupCalls):])
		for k, i := range g.indexes {
			m, err := results[k].ToMessage()
			if err != nil && !isScriptMissing(err) {
				t.servers.forget(calls[i].Partition)
			}
			replies[i] = scriptReply{m, cmp.Or(err, notReplicated)}
		}
	}
	// What has no known server, or met one that does not know the script, is called by itself.
	for _, i := range g.indexes {
		if g.node == nil || isScriptMissing(replies[i].err) {
			m, err := t.tryDurably(ctx, calls[i].Partition, sc, calls[i].Args...)
			replies[i] = scriptReply{m, err}
		}
	}
}

// replicaWaitCommands returns commands that wait until a replica has what the server of a
// partition has by now. WAIT, since Redis 7.2, waits for what its own connection wrote, and a call may
// find all done that others are still waiting for: so something is written in any case.
func (t *scriptTransport) replicaWaitCommands(p *Partition) []rueidis.Completed {
	write := t.conn.B().Hset().Key(p.keyPrefix+"m").FieldValue().FieldValue("waits", "1").Build()
	return []rueidis.Completed{write, t.conn.B().Wait().Numreplicas(1).Timeout(t.timeout.Milliseconds() / 2).Build()}
}

// checkReplicated returns errNotReplicated unless a replica has confirmed, as the replies to
// replicaWaitCommands say.
func checkReplicated(replies []rueidis.RedisResult) error {
	written := replies[0].Error()
	if n, err := replies[1].AsInt64(); written != nil || err != nil || n < 1 {
		return errors.Join(errNotReplicated, written, err)
	}
	return nil
}

// BoolArg returns b as an argument of a script.
func BoolArg(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
