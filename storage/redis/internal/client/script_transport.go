package client

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/decorum-crawler/decorum/storage/redis/internal/lua"
)

// A scriptTransport sends calls of scripts to the servers of their partitions, once.
type scriptTransport struct {
	conn           rueidis.Client
	clock          *Clock
	servers        *partitionServers
	timeout        time.Duration
	awaitsReplicas bool // whether a durable call waits until a replica has confirmed it
}

// A Call is a call of a script on one partition.
type Call struct {
	*Partition
	Args []string
}

// CallsTo returns a call with the same arguments for each of some partitions.
func CallsTo(partitions []*Partition, args ...string) []Call {
	calls := make([]Call, len(partitions))
	for i, p := range partitions {
		calls[i] = Call{p, args}
	}
	return calls
}

// A scriptReply is the reply to a call, or its error.
type scriptReply struct {
	message Reply
	err     error
}

// try calls a script once. It puts the time before args.
func (t *scriptTransport) try(ctx context.Context, p *Partition, sc *lua.Script, args ...string) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	args = append([]string{t.clock.nowArg()}, args...)
	m, err := t.conn.Do(ctx, t.command(sc, false, p, args)).ToMessage()
	if isScriptMissing(err) {
		m, err = t.conn.Do(ctx, t.command(sc, true, p, args)).ToMessage()
	}
	return m, err
}

// tryAll makes calls of a script once, those to a server in one go.
func (t *scriptTransport) tryAll(ctx context.Context, sc *lua.Script, calls []Call) []scriptReply {
	if len(calls) == 0 {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	replies := make([]scriptReply, len(calls))
	for i, result := range t.conn.DoMulti(limited, t.commands(sc, calls)...) {
		a := &replies[i]
		if a.message, a.err = result.ToMessage(); isScriptMissing(a.err) {
			a.message, a.err = t.try(ctx, calls[i].Partition, sc, calls[i].Args...)
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
func (t *scriptTransport) commands(sc *lua.Script, calls []Call) []rueidis.Completed {
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
