package main

import (
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"
)

// workloadFlags defines the flags that choose a workload and change parts of it. The function that it
// returns, for use after flags are parsed, returns the workload.
func workloadFlags(flags *flag.FlagSet) func() (workload, error) {
	name := flags.String("workload", "W1", "the web to crawl: W1, W2, broad or web-2025; -hosts, -pages and the flags "+
		"for https change it")
	var changes []func(*workload) error
	change := func(name, usage string, set func(w *workload, value string) error) {
		flags.Func(name, usage+" (default: the workload's)", func(value string) error {
			changes = append(changes, func(w *workload) error {
				if err := set(w, value); err != nil {
					return fmt.Errorf("-%s %s: %w", name, value, err)
				}
				return nil
			})
			return nil
		})
	}
	changeTLS := func(name, usage string, set func(t *tlsWeb, value string) error) {
		change(name, "for https: "+usage, func(w *workload, value string) error {
			if w.TLS == nil {
				return errors.New("the pages of this workload are http")
			}
			return set(w.TLS, value)
		})
	}
	change("hosts", "number of hosts", func(w *workload, s string) (err error) {
		w.Hosts, err = strconv.Atoi(s)
		return err
	})
	change("pages", "number of pages of each host", func(w *workload, s string) (err error) {
		w.Pages, err = strconv.Atoi(s)
		return err
	})
	changeTLS("delay", "pause of decorum between the visits to a host", func(t *tlsWeb, s string) (err error) {
		t.Delay, err = time.ParseDuration(s)
		return err
	})
	changeTLS("latency", "time from a request to its response", func(t *tlsWeb, s string) (err error) {
		t.Latency, err = time.ParseDuration(s)
		return err
	})
	changeTLS("idle-timeout", "the server closes a connection that is idle for so long",
		func(t *tlsWeb, s string) (err error) {
			t.IdleTimeout, err = time.ParseDuration(s)
			return err
		})
	changeTLS("keep-alive-header", "true or false: responses announce -idle-timeout",
		func(t *tlsWeb, s string) (err error) {
			t.KeepAliveHeader, err = strconv.ParseBool(s)
			return err
		})
	changeTLS("requests-per-connection", "the server closes a connection after so many; 0: no limit",
		func(t *tlsWeb, s string) (err error) {
			t.RequestsPerConnection, err = strconv.Atoi(s)
			return err
		})
	changeTLS("http2", "true or false: the server offers HTTP/2", func(t *tlsWeb, s string) (err error) {
		t.HTTP2, err = strconv.ParseBool(s)
		return err
	})
	return func() (workload, error) {
		w, ok := workloads()[*name]
		if !ok {
			return w, fmt.Errorf("unknown workload %q", *name)
		}
		for _, set := range changes {
			if err := set(&w); err != nil {
				return w, err
			}
		}
		return w, nil
	}
}
