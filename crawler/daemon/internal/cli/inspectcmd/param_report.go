package inspectcmd

import (
	"cmp"
	"context"
	"io"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/usage"
)

// writeParamReport writes the first q.limit rows of the report r in the format q.Format. It cuts r
// to that length.
func writeParamReport(r *inspect.QueryParamReport, w io.Writer, q reportOptions) error {
	if q.limit > 0 {
		r.Suggestions = r.Suggestions[:min(q.limit, len(r.Suggestions))]
		r.HostDuplicates = r.HostDuplicates[:min(q.limit, len(r.HostDuplicates))]
		r.URLKindCosts = r.URLKindCosts[:min(q.limit, len(r.URLKindCosts))]
	}
	switch q.Format {
	case "json":
		return jsonline.WriteIndented(w, r)
	case "jsonl":
		e := jsonline.NewEncoder(w)
		for _, m := range r.Suggestions {
			if err := e.Encode(m); err != nil {
				return err
			}
		}
		return nil
	}
	return writeParamTable(r, w, q.DataDir)
}

// writeParamTable writes the report as text: a table of parameters with an example of each, a table
// of duplicate pages by host, and a table of sort links and feeds by host.
func writeParamTable(r *inspect.QueryParamReport, w io.Writer, dataDir string) error {
	var p reporttext.Builder
	p.WriteLine("Parameters that may not change pages, from the %d pages in the output of the crawl in %s",
		r.PagesWithBody, dataDir)
	if r.SampledOneIn > 1 {
		p.WriteLine("One in %d URLs was compared with others", r.SampledOneIn)
	}
	p.WriteLine("")
	if len(r.Suggestions) == 0 {
		p.WriteLine("No page stays the same when a parameter is left out or changed.")
	} else {
		p.WriteTable(func(row func(...any)) {
			row("HOST", "PARAMETER", "PATH", "SAME", "OTHER", "CANONICAL WITHOUT", "WITH", "SUGGESTED LINE")
			for _, m := range r.Suggestions {
				row(m.Host, m.Parameter, m.PathPrefix, m.SameBodyPairs, m.DifferentBodyPairs, m.CanonicalsWithoutParam,
					m.CanonicalsWithParam, cmp.Or(m.CleanParam, "-"))
			}
		})
		p.WriteLine("")
		for _, m := range r.Suggestions {
			hint := ""
			if m.MayBeSessionID && m.CleanParam == "" {
				hint = "; it is named like a session ID: if it is one, scope.params.drop can name it"
			}
			p.WriteLine("%s of %s: %s and %s%s", m.Parameter, m.Host, m.ExamplePair[0], m.ExamplePair[1], hint)
		}
	}
	if len(r.HostDuplicates) > 0 {
		p.WriteLine("")
		p.WriteLine("Pages with the body of another page of their host, and pages that name another URL as canonical:")
		p.WriteTable(func(row func(...any)) {
			row("HOST", "SAME BODY", "CANONICAL", "OF PAGES")
			for _, d := range r.HostDuplicates {
				row(d.Host, d.DuplicateBodies, d.CanonicalElsewhere, d.PagesWithBody)
			}
		})
	}
	writeURLKindCosts(r.URLKindCosts, &p)
	return p.PrintTo(w)
}

// writeURLKindCosts writes what links that sort lists, and feeds, have cost, and how to leave them out.
func writeURLKindCosts(costs []inspect.URLKindCost, p *reporttext.Builder) {
	if len(costs) == 0 {
		return
	}
	p.WriteLine("")
	p.WriteLine("Links that only sort a list (sort_links), and feeds that pages announce (feeds):")
	p.WriteTable(func(row func(...any)) {
		row("HOST", "KIND", "REQUESTS", "SAME BODY")
		for _, c := range costs {
			row(c.Host, c.Kind, c.Requests, c.DuplicateBodies)
		}
	})
	p.WriteLine("")
	for _, c := range costs {
		p.WriteLine("%s of %s: such as %s", c.Kind, c.Host, c.Example)
		p.WriteLine("  to leave them out: %s", c.Setting)
	}
}

// printParamReport prints the report of --params, from the output file of the crawl.
func (q reportOptions) printParamReport(ctx context.Context) error {
	host, err := command.ParseHostFlag(q.host)
	if err != nil {
		return err
	}
	dir := datadir.StateDir(q.DataDir)
	if err := dir.RequireCrawl(); err != nil {
		return err
	}
	d, err := project.ReadFile(dir.Path(datadir.ProjectFile))
	if err != nil {
		return err
	}
	if d.Output.JSONL == "-" {
		return usage.Errorf("the crawl wrote its output to standard output: --params needs a file")
	}
	// The output file is read without the lock of the directory, so that the crawl may be running.
	ctx, stop := q.Env.WithSignalCancel(ctx)
	defer stop()
	s, err := inspect.AnalyzeParams(ctx, cmp.Or(d.Output.JSONL, dir.Path(datadir.OutputFile)), host)
	if err != nil {
		return q.ExplainError(ctx, err)
	}
	return writeParamReport(s.Report(), q.Env.Stdout, q)
}
