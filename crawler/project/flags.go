package project

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/internal/usage"
)

// A flag of the crawl command is a field of the project file under another
// name.
type projectFieldFlag struct{ flagName, fieldPath, usage string }

var projectFieldFlags = []projectFieldFlag{
	{"agent", "agent", "product token `NAME` or NAME/VERSION, looked for in robots.txt and sent as User-Agent"},
	{"contact", "agent.contact", "`URL` or mailto: that a site owner can reach you by; compulsory"},
	{"data", "store.path", "`DIR` that keeps the state of the crawl"},
	{"max-pages", "limits.pages", "stop after `N` pages; 0: no limit"},
	{"max-depth", "scope.max_depth", "follow links `N` deep; 0: seeds only"},
	{"max-time", "limits.duration", "stop after `TIME`, as 90s or 24h"},
	{"scope", "scope.within", "how far from the seeds to go: `REACH` is origin, host, domain or any"},
	{"delay", "politeness.delay", "rest of a host between two visits, as 500ms or 10s"},
	{"workers", "limits.workers", "visits at a time, over all hosts"},
	{"concurrency", "politeness.concurrency", "visits at a time to one host"},
	{"dialect", "robots.dialect", "how robots.txt is read: google, yandex or google-oss"},
	{"output", "output.jsonl", "write a JSON line for each visit to `FILE`; -: standard output (default DIR/pages.jsonl)"},
	{"warc", "output.warc", "write all requests and answers to WARC files in `DIR`"},
	{"proxy", "fetch.proxy", "send requests through the proxy at `URL`: http, https, socks5 or socks5h"},
	{"connect-to", "fetch.connect_to", "connect to HOST2:PORT2 instead, `HOST:PORT:HOST2:PORT2` as curl's; repeatable"},
	{"allow-private", "fetch.allow_private", "allow connections to loopback and private addresses"},
}

// A fieldFlagValue is what the command line says of one field. It is kept as text:
// the project file is read later, and flags win over it.
type fieldFlagValue struct {
	fieldPath string
	values    []string
}

// AddFieldFlags adds the flags of these names to fs, all if none is named.
// What a flag is given is tried on the spot, so that a mistake is told by its own
// name.
func AddFieldFlags(fs *pflag.FlagSet, names ...string) []*pflag.Flag {
	var flags []*pflag.Flag
	for _, f := range projectFieldFlags {
		if len(names) > 0 && !slices.Contains(names, f.flagName) {
			continue
		}
		flag := fs.VarPF(&fieldFlagValue{fieldPath: f.fieldPath}, f.flagName, "", f.usage)
		if new(Project).fieldAt(f.fieldPath).Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
		flags = append(flags, flag)
	}
	return flags
}

// Set is part of pflag.Value.
func (s *fieldFlagValue) Set(text string) error {
	values := append(s.values, text)
	if err := s.applyTo(NewFile(), "", values); err != nil {
		return err
	}
	s.values = values
	return nil
}

// String is part of pflag.Value: the default, until Set is called.
func (s *fieldFlagValue) String() string {
	if len(s.values) > 0 {
		return strings.Join(s.values, " ")
	}
	switch v := NewFile().fieldAt(s.fieldPath); {
	case v.IsZero(), v.Kind() == reflect.Slice:
		return ""
	case s.fieldPath == "agent":
		return NewFile().Agent.Product
	default:
		return fmt.Sprint(v.Interface())
	}
}

// Type is part of pflag.Value; help shows it where usage names no value.
func (s *fieldFlagValue) Type() string {
	switch new(Project).fieldAt(s.fieldPath).Interface().(type) {
	case bool:
		return "bool" // and so help shows none
	case int:
		return "N"
	case Duration:
		return "TIME"
	}
	return "NAME"
}

// GetSlice returns the values that were given, as that of pflag.SliceValue does.
func (s *fieldFlagValue) GetSlice() []string { return s.values }

// applyTo gives the field of d the values; by says what did it.
func (s *fieldFlagValue) applyTo(d *File, setBy string, values []string) error {
	if s.fieldPath != "agent" {
		return d.SetFieldFromCommandLine(s.fieldPath, setBy, values...)
	}
	product, version, ok := strings.Cut(values[len(values)-1], "/")
	if ok && version == "" {
		return fmt.Errorf("%q has no version after the slash; expected NAME or NAME/VERSION", values[len(values)-1])
	}
	if ok {
		if err := d.SetFieldFromCommandLine("agent.version", setBy, version); err != nil {
			return err
		}
	}
	return d.SetFieldFromCommandLine("agent.product", setBy, product)
}

// ApplyFieldFlags gives d what the command line says.
func ApplyFieldFlags(d *File, flags []*pflag.Flag) error {
	for _, f := range flags {
		if !f.Changed {
			continue
		}
		s := f.Value.(*fieldFlagValue)
		if err := s.applyTo(d, "--"+f.Name, s.values); err != nil {
			return usage.Errorf("--%s: %w", f.Name, err)
		}
	}
	return nil
}
