package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// longestForm bounds what a form may send. Whoever has more URLs than that sends
// them to the API, which has no such bound.
const longestForm = 4 << 20

// What a form has done: where to go then, and what to say there; or the view of
// the form once more, with what is wrong.
type done struct {
	to, said string
	again    *view
}

// act does what a form asks for, and leads to a page that says so.
func (s *site) act(do func(*http.Request) (done, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !api.CallerOf(r.Context()).Role.May(api.Operate) {
			s.show(w, r, problemView(forbidden("this login may look, and change nothing")))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, longestForm)
		if err := r.ParseForm(); err != nil {
			s.show(w, r, problemView(formProblem(err)))
			return
		}
		d, err := do(r)
		switch {
		case d.again != nil:
			s.show(w, r, *d.again)
			return
		case err != nil: // with its status, which the audit keeps
			v := problemView(err)
			v.data = refusal{problemOf(err), cmp.Or(d.to, "/")}
			s.show(w, r, v)
			return
		case d.said != "":
			setFlash(w, r, d.said)
		}
		http.Redirect(w, r, d.to, http.StatusSeeOther)
	})
}

// A refusal is why something was not done, and where it was asked for.
type refusal struct {
	*api.Problem
	Back string
}

func forbidden(why string) *api.Problem {
	return &api.Problem{Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Detail: why}
}

func formProblem(err error) *api.Problem {
	p := &api.Problem{Title: "The form cannot be read", Status: http.StatusBadRequest, Detail: err.Error()}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		p.Status = http.StatusRequestEntityTooLarge
		p.Detail = fmt.Sprintf("a form may have %s; send more to the API", size(float64(tooLarge.Limit)))
	}
	return p
}

// said is what became of a project, by what was asked.
var said = map[api.Action]string{
	api.Start: "%s is started", api.Pause: "%s pauses: what is in hand is finished",
	api.Resume: "%s goes on", api.Stop: "%s stops: what is in hand is finished",
}

func (s *site) do(r *http.Request) (done, error) {
	name, action := r.PathValue("project"), api.Action(r.PathValue("action"))
	if said[action] == "" {
		return done{}, api.NotFound("%q is nothing that a project can be asked for", action)
	}
	return done{to: api.LocalPath(r.PostFormValue("back")), said: fmt.Sprintf(said[action], name)}, s.daemon.Do(r.Context(), name, action)
}

func (s *site) reload(r *http.Request) (done, error) {
	changes, err := s.daemon.Reload(r.Context())
	var news []string
	for _, c := range changes {
		if c.Change != "none" {
			news = append(news, c.Project+": "+strings.TrimSpace(c.Change+" "+c.Error))
		}
	}
	if len(news) == 0 {
		news = []string{"nothing has changed"}
	}
	return done{to: "/", said: "Project files are read again. " + strings.Join(news, "; ")}, err
}

func (s *site) deleteProject(r *http.Request) (done, error) {
	name := r.PathValue("project")
	if r.PostFormValue("name") != name {
		return done{to: "/projects/" + url.PathEscape(name) + "/file"}, api.Invalid("not deleted: type %q to confirm it", name)
	}
	return done{to: "/", said: name + " is deleted: its file and its state are kept aside"}, s.daemon.DeleteProject(r.Context(), name)
}

func (s *site) setBrake(r *http.Request) (done, error) {
	back := api.LocalPath(r.PostFormValue("back"))
	b := api.Brake{Host: strings.TrimSpace(r.PostFormValue("host")), Domain: r.PostFormValue("domain") != "",
		Stop: r.PostFormValue("kind") != "slow", Reason: strings.TrimSpace(r.PostFormValue("reason")), By: api.CallerOf(r.Context()).Name, Since: time.Now()}
	if !b.Stop {
		delay, err := durationOf(r.PostFormValue("delay"))
		if err != nil || delay <= 0 {
			return done{to: back}, api.Invalid("the rest must be a duration, as in 30s")
		}
		b.Delay = api.Milliseconds(delay)
	}
	if text := r.PostFormValue("for"); text != "" {
		lasts, err := durationOf(text)
		if err != nil || lasts <= 0 {
			return done{to: back}, api.Invalid("how long the brake lasts must be a duration, as in 2h or 7d")
		}
		b.Expires = b.Since.Add(lasts)
	}
	return done{to: back, said: "The brake is on: " + b.Host}, s.daemon.SetBrake(r.Context(), b)
}

func (s *site) liftBrake(r *http.Request) (done, error) {
	host := r.PostFormValue("host")
	return done{to: api.LocalPath(r.PostFormValue("back")), said: "The brake is off: " + host}, s.daemon.LiftBrake(r.Context(), host)
}

var days = regexp.MustCompile(`^(\d{1,4})d$`)

// durationOf reads a duration as project files write it.
func durationOf(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if m := days.FindStringSubmatch(text); m != nil {
		d, err := time.ParseDuration(m[1] + "h")
		return 24 * d, err
	}
	return time.ParseDuration(text)
}
