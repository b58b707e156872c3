package main

import (
	"flag"
	"fmt"
	"strconv"
	"time"
)

// workloadFlags defines the flags that choose a workload or change a part of it. The function that it
// returns, for use after flags are parsed, returns the workload.
func workloadFlags(flags *flag.FlagSet) func() (workload, error) {
	name := flags.String("workload", "W1", "W1, W2, broad or web-2025: the web to crawl; the flags up to -http2 change it")
	var changes []func(*workload) error
	change := func(name, usage string, set func(w *workload, value string) error) {
		flags.Func(name, usage, func(value string) error {
			changes = append(changes, func(w *workload) error {
				if err := set(w, value); err != nil {
					return fmt.Errorf("-%s %s: %w", name, value, err)
				}
				return nil
			})
			return nil
		})
	}
	number := func(name, usage string, field func(*workload) *int) {
		change(name, usage, func(w *workload, value string) (err error) {
			*field(w), err = strconv.Atoi(value)
			return err
		})
	}
	duration := func(name, usage string, field func(*tlsWeb) *time.Duration) {
		change(name, usage, func(w *workload, value string) (err error) {
			if w.TLS == nil {
				return errOnlyTLS
			}
			*field(w.TLS), err = time.ParseDuration(value)
			return err
		})
	}
	boolean := func(name, usage string, field func(*tlsWeb) *bool) {
		change(name, usage, func(w *workload, value string) (err error) {
			if w.TLS == nil {
				return errOnlyTLS
			}
			*field(w.TLS), err = strconv.ParseBool(value)
			return err
		})
	}
	number("hosts", "number of hosts", func(w *workload) *int { return &w.Hosts })
	number("pages", "number of pages of each host", func(w *workload) *int { return &w.Pages })
	duration("delay", "https: pause of decorum at a host", func(t *tlsWeb) *time.Duration { return &t.Delay })
	duration("latency", "https: time before each response", func(t *tlsWeb) *time.Duration { return &t.Latency })
	duration("idle-timeout", "https: the server closes a connection that is idle for so long",
		func(t *tlsWeb) *time.Duration { return &t.IdleTimeout })
	change("requests-per-connection", "https: the server closes a connection after so many; 0: no limit",
		func(w *workload, value string) (err error) {
			if w.TLS == nil {
				return errOnlyTLS
			}
			w.TLS.RequestsPerConnection, err = strconv.Atoi(value)
			return err
		})
	boolean("keep-alive-header", "https, true or false: responses announce -idle-timeout in a Keep-Alive header",
		func(t *tlsWeb) *bool { return &t.KeepAliveHeader })
	boolean("http2", "https, true or false: the server offers HTTP/2", func(t *tlsWeb) *bool { return &t.HTTP2 })
	return func() (workload, error) {
		w, ok := workloads()[*name]
		if !ok {
			return w, fmt.Errorf("unknown workload %q", *name)
		}
		for _, c := range changes {
			if err := c(&w); err != nil {
				return w, err
			}
		}
		return w, nil
	}
}

// errOnlyTLS is the error for a flag that the workload has no use for.
var errOnlyTLS = fmt.Errorf("only workloads with https have this: broad and web-2025")
