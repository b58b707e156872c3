package project

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/decorum-crawler/decorum/internal/usage"
)

// A projectFieldFlag is a flag of the crawl command that sets a field of the project file. usage is
// its help text.
type projectFieldFlag struct{ flagName, fieldPath, usage string }

// projectFieldFlags lists the flags in the order of the help text.
var projectFieldFlags = []projectFieldFlag{
	{"agent", "agent", "product token `NAME` or NAME/VERSION to look for in robots.txt and to send as User-Agent"},
	{"contact", "agent.contact", "`URL` or mailto: address at which a site owner can reach you; required"},
	{"data", "store.path", "`DIR` that keeps the state of the crawl"},
	{"max-pages", "limits.pages", "stop after `N` pages; 0: no limit"},
	{"max-depth", "scope.max_depth", "follow links `N` deep; 0: seeds only"},
	{"max-time", "limits.duration", "stop after `TIME`, as 90s or 24h"},
	{"scope", "scope.within", "how far from the seeds to go: `REACH` is path, origin, host, domain or any"},
	{"sitemap-xml", "discover.sitemap_xml", "try /sitemap.xml where robots.txt names no sitemap (default true)"},
	{"resources", "discover.resources", "visit the styles, scripts, fonts, images and media of pages, too"},
	{"delay", "politeness.delay", "shortest pause between two visits to a host, as 500ms or 10s"},
	{"workers", "limits.workers", "simultaneous visits, over all hosts"},
	{"concurrency", "politeness.concurrency", "simultaneous visits to one host"},
	{"dialect", "robots.dialect", "rules for reading robots.txt: google, yandex or google-oss"},
	{"output", "output.jsonl", "write a JSON line for each visit to `FILE`; -: standard output (default " +
		"DIR/pages.jsonl)"},
	{"bodies", "output.bodies", "write the bodies of pages to DIR/bodies, in files named by their SHA-256"},
	{"outlinks", "output.outlinks", "list the links of each page in its JSON line"},
	{"warc", "output.warc", "write all requests and responses to WARC files in `DIR`"},
	{"proxy", "fetch.proxy", "send requests through the proxy at `URL`: http, https, socks5 or socks5h"},
	{"connect-to", "fetch.connect_to", "connect to HOST2:PORT2 instead, `HOST:PORT:HOST2:PORT2` as curl's; repeatable"},
	{"allow-private", "fetch.allow_private", "allow connections to loopback and private addresses"},
}

// A fieldFlagValue holds the values of one flag as text until ApplyFieldFlags writes them over those
// of the project file, which is read after the flags.
type fieldFlagValue struct {
	fieldPath string
	values    []string // one for each time that the flag is given
}

// AddFieldFlags adds the flags with the given names to fs, or all flags if no name is given. Setting
// a flag checks its value at once, so that the error names the flag.
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

// Set implements pflag.Value. It tries the text on an empty project file and returns the error.
func (s *fieldFlagValue) Set(text string) error {
	values := append(s.values, text)
	if err := s.applyTo(NewFile(), "", values); err != nil {
		return err
	}
	s.values = values
	return nil
}

// String implements pflag.Value: it returns the field's default until Set is called.
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

// Type implements pflag.Value. The help text shows the type where usage names no value.
func (s *fieldFlagValue) Type() string {
	switch new(Project).fieldAt(s.fieldPath).Interface().(type) {
	case bool:
		return "bool" // pflag shows no value for this type
	case int:
		return "N"
	case Duration:
		return "TIME"
	}
	return "NAME"
}

// GetSlice returns all values of the flag, as pflag.SliceValue.GetSlice does.
func (s *fieldFlagValue) GetSlice() []string { return s.values }

// applyTo sets the field of d to values. setBy is the argument that errors name. The agent flag sets
// two fields: agent.product and, after a slash, agent.version.
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

// ApplyFieldFlags sets the fields of d whose flags are on the command line. flags are those that
// AddFieldFlags returned. An invalid value is a *usage.Error that names the flag.
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
