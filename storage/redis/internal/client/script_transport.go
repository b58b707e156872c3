package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A scriptTransport sends each call of a script to the server of its partition, once.
type scriptTransport struct {
	conn           rueidis.Client
	clock          *ScriptClock
	servers        *partitionServers
	timeout        time.Duration
	awaitsReplicas bool // whether durable calls wait until a replica has confirmed them
}

// A ScriptCall is a call of a script on one partition. Args do not include the time.
type ScriptCall struct {
	*Partition
	Args []string
}

// CallsTo returns a call with the same arguments for each partition.
func CallsTo(partitions []*Partition, args ...string) []ScriptCall {
	calls := make([]ScriptCall, len(partitions))
	for i, p := range partitions {
		calls[i] = ScriptCall{p, args}
	}
	return calls
}

// A scriptReply is the reply to a call, or the error of the call.
type scriptReply struct {
	message Reply
	err     error
}

// try calls a script once, with the time before args. If durable is set, and the transport awaits
// replicas, it returns an error unless a replica has confirmed what the script did.
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

// tryBatch makes each call once, as try does. Calls to one server go out together.
func (t *scriptTransport) tryBatch(ctx context.Context, durable bool, sc *lua.Script,
	calls []ScriptCall) []scriptReply {
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
		// A server that does not know the script gets its text, in a separate call.
		if a.message, a.err = result.ToMessage(); isScriptMissing(a.err) {
			a.message, a.err = t.try(ctx, false, calls[i].Partition, sc, calls[i].Args...)
		}
	}
	return replies
}

// command returns the command that calls a script, by its SHA-1 or with its text.
func (t *scriptTransport) command(sc *lua.Script, withText bool, p *Partition, args []string) rueidis.Completed {
	if withText {
		return t.conn.B().Eval().Script(sc.Text).Numkeys(1).Key(p.keyPrefix).Arg(args...).Build()
	}
	return t.conn.B().Evalsha().Sha1(sc.SHA1).Numkeys(1).Key(p.keyPrefix).Arg(args...).Build()
}

// commands returns the commands that call a script by its SHA-1, with the time before the arguments.
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

// errNotReplicated is returned for a call whose changes would be lost with the master.
var errNotReplicated = errors.New("no replica has confirmed the change")

// tryDurably calls a script once, and returns an error unless a replica has confirmed what the script
// did. WAIT covers the writes of its own connection, so script and WAIT go through one dedicated
// connection. A redirection to another server is an error.
func (t *scriptTransport) tryDurably(
	ctx context.Context, p *Partition, sc *lua.Script, args ...string,
) (m Reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	args = append([]string{t.clock.nowArg()}, args...)
	err = t.conn.Dedicated(func(c rueidis.DedicatedClient) error {
		// Call the script by its SHA-1 first, then with its text if the server does not know it.
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

// tryAllDurably is tryBatch for calls that a replica must confirm. Calls to one server go through one
// connection and share one WAIT.
func (t *scriptTransport) tryAllDurably(ctx context.Context, sc *lua.Script, calls []ScriptCall) []scriptReply {
	replies := make([]scriptReply, len(calls))
	for i := range replies {
		replies[i].err = errNotReplicated // stays if ctx is done before the call is made
	}
	InParallel(ctx, t.servers.groupCalls(ctx, calls), func(g *callsForServer) error {
		t.tryGroupDurably(ctx, sc, calls, g, replies)
		return nil // errors are in replies
	})
	return replies
}

// tryGroupDurably makes the calls of a group and stores their replies. rueidis sends commands that
// include a blocking one, here WAIT, through one connection that no other call uses.
func (t *scriptTransport) tryGroupDurably(
	ctx context.Context, sc *lua.Script, calls []ScriptCall, g *callsForServer, replies []scriptReply,
) {
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	if g.node != nil {
		// Send all calls of the group, and one WAIT that covers them.
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
	// Call the others separately: their server is unknown, or does not know the script.
	for _, i := range g.indexes {
		if g.node == nil || isScriptMissing(replies[i].err) {
			m, err := t.tryDurably(ctx, calls[i].Partition, sc, calls[i].Args...)
			replies[i] = scriptReply{m, err}
		}
	}
}

// replicaWaitCommands returns commands that wait until a replica has all writes of the server of p so
// far. Since Redis 7.2, WAIT waits only for writes of its own connection. A call may write nothing
// because another process has just written the same, unconfirmed; so the first command writes in any
// case. WAIT takes at most half of the timeout.
func (t *scriptTransport) replicaWaitCommands(p *Partition) []rueidis.Completed {
	write := t.conn.B().Hset().Key(p.keyPrefix+"m").FieldValue().FieldValue("waits", "1").Build()
	return []rueidis.Completed{write, t.conn.B().Wait().Numreplicas(1).Timeout(t.timeout.Milliseconds() / 2).Build()}
}

// checkReplicated returns an error that wraps errNotReplicated, unless the replies to
// replicaWaitCommands say that a replica has confirmed.
func checkReplicated(replies []rueidis.RedisResult) error {
	written := replies[0].Error()
	if n, err := replies[1].AsInt64(); written != nil || err != nil || n < 1 {
		return errors.Join(errNotReplicated, written, err)
	}
	return nil
}

// BoolArg returns b as an argument of a script: "1" or "0".
func BoolArg(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
