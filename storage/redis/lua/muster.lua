-- muster(clock, worker, patience, joins, leaves, renews, most pages, most bytes, most
-- time, permits, used, received, number) → sum, and a line of numbers: workers, permits,
-- and 1 each if the limit of pages, bytes, time is reached; or 'gone' if the worker was not
-- heard of for so long that it was taken for dead. Numbers of a worker are of all its
-- time, so that to call again changes nothing. A report that was overtaken by one with a
-- higher number changes nothing either: it would take permits back that are in use.
local u, id, patience = object('u'), ARGV[2], tonumber(ARGV[3])
local joins, leaves, renews = ARGV[4] == '1', ARGV[5] == '1', ARGV[6] == '1'
local pages, bytes, time = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])

-- release forgets a worker. Permits that it held count as used, if it cannot say.
local function release(name, dead)
  local w = object('w:' .. name)
  local held = get(w, 'p') - get(w, 'u')
  add(u, 'out', -held)
  if dead then add(u, 'pages', held) end
  call('DEL', w.key)
  call('ZREM', base .. 'w', name)
  objects['w:' .. name] = nil
end

local function reached(limit, field) return limit > 0 and get(u, field) >= limit and 1 or 0 end

for _, name in ipairs(call('ZRANGEBYSCORE', base .. 'w', '-inf', now - patience, 'LIMIT', 0, 50)) do
  release(name, true)
end
if not joins and not call('ZSCORE', base .. 'w', id) then return {finish(), 'gone'} end

local w = object('w:' .. id)

-- grant sets how many pages the worker is permitted. Of what is left nobody gets more than
-- a part at a time, so that some is for all.
local function grant(permits, used)
  local more = permits - get(w, 'p')
  if pages > 0 then more = math.min(more, math.max(0, math.ceil((pages - get(u, 'pages') - get(u, 'out')) / 4))) end
  permits = math.max(get(w, 'p') + more, used)
  add(u, 'out', permits - get(w, 'p'))
  set(w, 'p', permits)
end

-- count takes the report.
local function count(permits, used, received, number)
  if renews and reached(pages, 'pages') + reached(bytes, 'bytes') + reached(time, 'time') > 0 then
    set(u, 'pages', 0)
    set(u, 'bytes', 0)
    set(u, 'time', 0)
  end
  if now - get(u, 'last') < patience then add(u, 'time', now - get(u, 'last')) end
  set(u, 'last', now)
  set(w, 'i', number)
  add(u, 'pages', used - get(w, 'u'))
  add(u, 'out', get(w, 'u') - used)
  set(w, 'u', used)
  add(u, 'bytes', received - get(w, 'b'))
  set(w, 'b', received)
  grant(permits, used)
  call('ZADD', base .. 'w', now, id)
  if leaves then release(id, false) end
end

local number = tonumber(ARGV[13])
if number >= get(w, 'i') then count(tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12]), number) end
return {finish(), table.concat({call('ZCARD', base .. 'w'), get(w, 'p'), reached(pages, 'pages'), reached(bytes, 'bytes'),
  reached(time, 'time')}, ' ')}
