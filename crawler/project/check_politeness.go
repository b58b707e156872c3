package project

import (
	"cmp"
	"maps"
	"slices"
	"time"
	_ "time/tzdata" // the zones of windows are there on a bare machine, too
)

// checkPolitenessSettings checks the windows, the pace of addresses, and what is
// otherwise for single hosts.
func checkPolitenessSettings(p *Project) *FieldProblem {
	window := p.Politeness.Window.check("politeness.window")
	if f := cmp.Or(window, checkConcurrency("politeness.ip.concurrency", p.Politeness.PerIP.Concurrency)); f != nil {
		return f
	}
	named := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.Politeness.Hosts)) {
		field := "politeness.hosts." + name
		host, ok := CanonicalHost(name)
		if !ok {
			return NewFieldProblem(field, "%q is not the name of a host: expected no scheme, port, path or wildcard, as in intranet.example", name)
		}
		if sameHost, ok := named[host]; ok {
			return NewFieldProblem(field, "%q is the same host as %q", name, sameHost)
		}
		named[host] = name
		if f := p.Politeness.Hosts[name].check(field); f != nil {
			return f
		}
	}
	return nil
}

func (h HostPoliteness) check(field string) *FieldProblem {
	if f := checkConcurrency(field+".concurrency", h.Concurrency); f != nil {
		return f
	}
	if a := h.AdaptiveFactor; a != nil && !(*a >= 0 && *a <= 1000) { // so written, it refuses NaN
		return NewFieldProblem(field+".adaptive", "%v is out of range: expected 0 to 1000", formatWithoutExponent(*a))
	}
	if h.Window != nil {
		return h.Window.check(field + ".window")
	}
	return nil
}

func checkConcurrency(field string, n *int) *FieldProblem {
	if n != nil && (*n < 1 || *n > 1000) {
		return NewFieldProblem(field, "%d is out of range: expected 1 to 1000", *n)
	}
	return nil
}

func (w Window) check(field string) *FieldProblem {
	if w.Hours == "" && w.Zone != "" {
		return NewFieldProblem(field, "expected hours, as in 22:00-06:00")
	}
	if _, err := time.LoadLocation(w.Zone); err != nil || w.Zone == "Local" {
		return NewFieldProblem(field+".zone", "%q is not a time zone: expected its IANA name, as in Europe/Prague", w.Zone)
	}
	if _, err := w.parse(); err != nil {
		return NewFieldProblem(field+".hours", "%v", err)
	}
	return nil
}
