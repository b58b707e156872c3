package page

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// maxFormBytes bounds what a form may send. Whoever has more URLs than that sends
// them to the API, which has no such bound.
const maxFormBytes = 4 << 20

// What a form has done: where to go then, and what to say there; or the view of
// the form once more, with what is wrong.
type formResult struct {
	redirectTo, message string
	redisplayedPage     *pageResult
}

// formHandler does what a form asks for, and leads to a page that says so.
func (s *webUI) formHandler(submit func(*http.Request) (formResult, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !api.CallerFromContext(r.Context()).Role.Allows(api.RoleOperate) {
			s.renderPage(w, r, problemView(forbiddenProblem("this login may look, and change nothing")))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		if err := r.ParseForm(); err != nil {
			s.renderPage(w, r, problemView(unreadableFormProblem(err)))
			return
		}
		d, err := submit(r)
		switch {
		case d.redisplayedPage != nil:
			s.renderPage(w, r, *d.redisplayedPage)
			return
		case err != nil: // with its status, which the audit keeps
			v := problemView(err)
			v.data = problemData{problemOf(err), cmp.Or(d.redirectTo, "/")}
			s.renderPage(w, r, v)
			return
		case d.message != "":
			setFlashMessage(w, r, d.message)
		}
		http.Redirect(w, r, d.redirectTo, http.StatusSeeOther)
	})
}

// actionMessages is what became of a project, by what was asked.
var actionMessages = map[api.ProjectAction]string{
	api.ActionStart: "%s is started", api.ActionPause: "%s pauses: what is in hand is finished",
	api.ActionResume: "%s goes on", api.ActionStop: "%s stops: what is in hand is finished",
}

func (s *webUI) controlProject(r *http.Request) (formResult, error) {
	name, action := r.PathValue("project"), api.ProjectAction(r.PathValue("action"))
	if actionMessages[action] == "" {
		return formResult{}, api.NotFound("%q is nothing that a project can be asked for", action)
	}
	return formResult{redirectTo: api.LocalRedirectPath(r.PostFormValue("back")), message: fmt.Sprintf(actionMessages[action], name)}, s.daemon.ControlProject(r.Context(), name, action)
}

func (s *webUI) reloadProjects(r *http.Request) (formResult, error) {
	changes, err := s.daemon.ReloadProjects(r.Context())
	var messages []string
	for _, c := range changes {
		if c.Outcome != "none" {
			messages = append(messages, c.Project+": "+strings.TrimSpace(c.Outcome+" "+c.Error))
		}
	}
	if len(messages) == 0 {
		messages = []string{"nothing has changed"}
	}
	return formResult{redirectTo: "/", message: "Project files are read again. " + strings.Join(messages, "; ")}, err
}

func (s *webUI) deleteProject(r *http.Request) (formResult, error) {
	name := r.PathValue("project")
	if r.PostFormValue("name") != name {
		return formResult{redirectTo: "/projects/" + url.PathEscape(name) + "/file"}, api.InvalidInput("not deleted: type %q to confirm it", name)
	}
	return formResult{redirectTo: "/", message: name + " is deleted: its file and its state are kept aside"}, s.daemon.DeleteProject(r.Context(), name)
}

func (s *webUI) setBrake(r *http.Request) (formResult, error) {
	back := api.LocalRedirectPath(r.PostFormValue("back"))
	b := api.Brake{Host: strings.TrimSpace(r.PostFormValue("host")), WithSubdomains: r.PostFormValue("domain") != "",
		Stop: r.PostFormValue("kind") != "slow", Reason: strings.TrimSpace(r.PostFormValue("reason")), By: api.CallerFromContext(r.Context()).Name, Since: time.Now()}
	if !b.Stop {
		delay, err := parseDuration(r.PostFormValue("delay"))
		if err != nil || delay <= 0 {
			return formResult{redirectTo: back}, api.InvalidInput("the rest must be a duration, as in 30s")
		}
		b.Delay = api.Milliseconds(delay)
	}
	if text := r.PostFormValue("for"); text != "" {
		duration, err := parseDuration(text)
		if err != nil || duration <= 0 {
			return formResult{redirectTo: back}, api.InvalidInput("how long the brake lasts must be a duration, as in 2h or 7d")
		}
		b.Expires = b.Since.Add(duration)
	}
	return formResult{redirectTo: back, message: "The brake is on: " + b.Host}, s.daemon.SetBrake(r.Context(), b)
}

func (s *webUI) liftBrake(r *http.Request) (formResult, error) {
	host := r.PostFormValue("host")
	return formResult{redirectTo: api.LocalRedirectPath(r.PostFormValue("back")), message: "The brake is off: " + host}, s.daemon.LiftBrake(r.Context(), host)
}

var daysPattern = regexp.MustCompile(`^(\d{1,4})d$`)

// parseDuration reads a duration as project files write it.
func parseDuration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if m := daysPattern.FindStringSubmatch(text); m != nil {
		d, err := time.ParseDuration(m[1] + "h")
		return 24 * d, err
	}
	return time.ParseDuration(text)
}

// An addURLsForm is the form that URLs are added by.
type addURLsForm struct {
	Text    string
	Result  *api.AddURLsResult // what became of them
	Problem string             // why not all of them were taken
}

func emptyAddURLsForm(*http.Request, *api.Project) (any, error) { return addURLsForm{}, nil }

func (s *webUI) addURLs(r *http.Request) (formResult, error) {
	text := r.PostFormValue("urls")
	i, err := s.daemon.Inspector(r.Context(), r.PathValue("project"))
	if err != nil {
		return formResult{}, err
	}
	result, addErr := i.AddURLs(r.Context(), nonBlankLines(text))
	if addErr != nil && result == nil {
		return formResult{}, addErr
	}
	v, l, err := s.loadProjectView(r, "urls")
	if err != nil {
		return formResult{}, err
	}
	form := addURLsForm{Result: result}
	if addErr != nil {
		form.Problem, v.status = addErr.Error(), problemOf(addErr).Status
	}
	if addErr != nil || result.InvalidLines > 0 || result.Refused > 0 {
		form.Text = text // to be put right
	}
	l.Content = form
	return formResult{redisplayedPage: &v}, nil
}

// nonBlankLines are those of a text, without those that are blank.
func nonBlankLines(text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line, nil) {
				return
			}
		}
	}
}
