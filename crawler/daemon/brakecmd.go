package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

const brakeHelp = `Stop or slow a host at once, in all projects of a running daemon: requests in
flight are broken off, no other begins, and that holds after a restart too. Without
HOST, list the brakes that are on.

  --stop   no visit at all (what is done if neither is said)
  --delay  one visit at a time, with at least this rest between two

A reason is compulsory. It is kept with the brake, and in the audit.`

const brakeExample = `  decorum brake shop.example --reason "they wrote: too many requests"
  decorum brake shop.example --delay 30s --for 2h --reason "their sale is on"
  decorum brake --domain example.com --reason "asked to stay away"
  decorum brake shop.example --lift --reason "they say it is fine again"
  decorum brake`

// A brakeCall is what decorum brake is asked for.
type brakeCall struct {
	remote
	stop, domain, lift bool
	delay, lasts       Duration
	reason             string
}

func (a *app) brakeCommand() *cobra.Command {
	var b brakeCall
	c := &cobra.Command{
		Use: "brake [HOST]", Short: "Stop or slow a host at once", Long: brakeHelp, Example: brakeExample, Args: args(cobra.MaximumNArgs(1)),
	}
	fs := c.Flags()
	b.addFlags(fs)
	fs.BoolVar(&b.stop, "stop", false, "make no visit at all")
	fs.BoolVar(&b.domain, "domain", false, "brake the subdomains of HOST as well")
	fs.BoolVar(&b.lift, "lift", false, "take the brake off")
	fs.StringVar(&b.reason, "reason", "", "why: `TEXT`, compulsory")
	fs.Var(timeFlag{&b.delay}, "delay", "rest between two visits, as 30s")
	fs.Var(timeFlag{&b.lasts}, "for", "lift it by itself after `TIME`, as 2h or 7d")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := a.untilSignal(c.Context())
		defer stop()
		for _, name := range []string{"stop", "domain", "lift", "reason", "delay", "for"} {
			if len(args) == 0 && fs.Changed(name) {
				return usage("--%s: no HOST is named; without one, decorum brake only lists the brakes that are on", name)
			}
		}
		if len(args) == 0 {
			return b.explained(ctx, a.listBrakes(ctx, &b))
		}
		return b.explained(ctx, a.brake(ctx, &b, args[0]))
	}
	return c
}

// A timeFlag is a flag of a duration as project files have them.
type timeFlag struct{ *Duration }

// Set is part of pflag.Value.
func (t timeFlag) Set(text string) error { return t.UnmarshalText([]byte(text)) }

// String is part of pflag.Value: no default is shown.
func (t timeFlag) String() string {
	if t.Duration == nil || *t.Duration == 0 {
		return ""
	}
	return t.Duration.String()
}

// Type is part of pflag.Value.
func (t timeFlag) Type() string { return "TIME" }

func (b *brakeCall) check() error {
	switch {
	case b.reason == "":
		return usage("--reason is compulsory: it is kept with the brake, and in the audit")
	case b.stop && b.delay != 0:
		return usage("--stop and --delay: a brake either stops or slows")
	case b.lift && (b.stop || b.delay != 0 || b.lasts != 0 || b.domain):
		return usage("--lift takes the brake off whatever it does: leave out the other flags")
	case b.delay < 0, b.lasts < 0:
		return usage("--delay and --for cannot be less than nothing")
	}
	return nil
}

func (a *app) brake(ctx context.Context, b *brakeCall, name string) error {
	if err := b.check(); err != nil {
		return err
	}
	valid := brakeHost
	if b.lift {
		valid = hostName // a brake of an older version may have any name
	}
	host, ok := valid(name)
	if !ok {
		return usage("%q is not the name of a host, as example.com", name)
	}
	client, err := b.client(ctx)
	if err != nil {
		return err
	}
	if b.lift {
		if err := client.LiftBrake(ctx, host, b.reason); err != nil {
			return err
		}
		_, err := fmt.Fprintf(a.stdout, "%s has no brake any more\n", host)
		return err
	}
	on, err := client.SetBrake(ctx, host, api.BrakeRequest{
		WithSubdomains: b.domain, Stop: b.delay == 0, Delay: api.Milliseconds(b.delay), Reason: b.reason, Duration: api.Milliseconds(b.lasts),
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s, %s\n", brakedText(*on), doesText(*on), untilText(*on))
	return err
}

func (a *app) listBrakes(ctx context.Context, b *brakeCall) error {
	client, err := b.client(ctx)
	if err != nil {
		return err
	}
	brakes, err := client.Brakes(ctx)
	if err != nil {
		return err
	}
	var s sheet
	s.brakes(brakes)
	_, err = s.WriteTo(a.stdout)
	return err
}

// brakes writes the brakes that are on.
func (s *sheet) brakes(brakes []api.Brake) {
	if len(brakes) == 0 {
		s.writeLine("no brake is on")
		return
	}
	s.table(func(row func(...any)) {
		row("HOST", "DOES", "UNTIL", "BY", "SINCE", "REASON")
		for _, b := range brakes {
			row(brakedText(b), doesText(b), untilText(b), printable(b.By), clock(b.Since), printable(b.Reason))
		}
	})
}

func brakedText(b api.Brake) string {
	if b.WithSubdomains {
		return "*." + b.Host
	}
	return b.Host
}

func doesText(b api.Brake) string {
	if b.Stop {
		return "stopped"
	}
	return "a visit every " + time.Duration(b.Delay).String()
}

func untilText(b api.Brake) string {
	if b.Expires.IsZero() {
		return "until it is lifted"
	}
	return "until " + clock(b.Expires)
}
