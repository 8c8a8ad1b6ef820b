// SPDX-License-Identifier: Apache-2.0
// Pages that move: the list of runs, a run that is measured, and charts of what was. Every page can be read without this.
'use strict'

const NONE = '\u2013'
const DASHES = [[], [6, 3], [6, 3, 2, 3], [2, 3]]
const VERDICTS = { PASS: 'good', FAIL: 'bad', INVALID: 'soft' }
const WINDOW_S = 120 // of a live chart
const SILENT_MS = 10000
const LAPSES = { sender_overdue: ['lapse-sender', 'the sender was overdue', 'c2'], receiver_away: ['lapse-receiver', 'a receiver was away', 'c1'], dut_away: ['lapse-dut', 'the DUT\'s CPU was away', 'ink'] }
const HEIGHT = 260
const FARTHEST = 16
const WHOLE = [1, 2, 5].flatMap((step) => [1, 10, 100, 1000, 1e4, 1e5].map((size) => step * size)).sort((one, other) => one - other)

const element = (id) => document.getElementById(id)
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value)
  made.append(...children)
  return made
}

// Values, as the report writes them

function digits(value, count) {
  if (value === 0) return '0'
  const decimals = Math.max(0, count - 1 - Math.floor(Math.log10(Math.abs(value))))
  const text = value.toFixed(Math.min(decimals, 12))
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

function scaled(value, count, unit, steps) {
  const size = Math.abs(value)
  const [factor, prefix] = steps.find(([least]) => size >= least) ?? [steps.at(-1)[0], steps.at(-1)[1]]
  return `${digits(value / factor, count)} ${prefix}${unit}`
}

const LARGE = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']]

function show(value, unit, count = 4) {
  if (value === null || value === undefined) return NONE
  switch (unit) {
    case 'fps': return scaled(value, count, 'fps', LARGE)
    case 'ratio': return `${digits(100 * value, count)} %`
    case 'us': return scaled(value, count, 's', [[1e6, ''], [1e3, 'm'], [1, '\u00b5'], [1e-3, 'n']])
    case 'us/s': return `${scaled(value, count, 's', [[1e6, ''], [1e3, 'm'], [1, '\u00b5'], [1e-3, 'n']])}/s`
    case 's': return scaled(value, count, 's', [[1, ''], [1e-3, 'm'], [1e-6, '\u00b5'], [1e-9, 'n']])
    default: return `${digits(value, Math.max(count, Math.ceil(Math.log10(Math.abs(value) + 1))))} ${unit}`
  }
}

function time(seconds) {
  const whole = Math.max(0, Math.round(seconds))
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}

// Charts

const drawn = new Set() // drawn again in other colours when the reader changes to light or dark

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawn.forEach((chart) => chart.draw()))
let resized = 0
addEventListener('resize', () => {
  clearTimeout(resized)
  resized = setTimeout(() => {
    drawn.forEach((chart) => chart.fit())
    fitTables()
  }, 150)
})

// Places of a logarithmic axis: powers of its base, as many as there is room for.
function powers(base) {
  return (u, axis, low, high) => {
    const found = []
    for (let place = base ** Math.ceil(Math.log(low) / Math.log(base) - 1e-9); place <= high; place *= base) found.push(place)
    const step = Math.ceil(found.length / Math.max(2, u.bbox.width / devicePixelRatio / 70))
    return found.filter((_, number) => number % step === 0)
  }
}

function axes(x, unit) {
  const base = { stroke: colour('soft'), font: '12px system-ui, sans-serif', grid: { stroke: colour('grid'), width: 1 }, ticks: { show: false } }
  return [
    { ...base, size: 30, label: x.label || null, labelSize: 22, labelFont: base.font, values: x.values, space: x.space ?? 60, ...(x.incrs ? { incrs: x.incrs } : {}), ...(x.log ? { splits: powers(x.log), filter: (u, places) => places } : {}) },
    { ...base, size: 84, values: (u, ticks) => ticks.map((tick) => (tick === null ? '' : show(tick, unit, 3))) }
  ]
}

class Chart {
  constructor(target) {
    this.target = target
    drawn.add(this)
  }

  get width() {
    return Math.max(200, this.target.clientWidth)
  }

  fit() {
    this.plot.setSize({ width: this.width, height: HEIGHT })
  }

  remove() {
    drawn.delete(this)
    this.plot.destroy()
  }
}

// A chart of values at places: curves, searches, trends. Points have x, y, low, high, values, name, is_at_least.
class ValueChart extends Chart {
  constructor(target, chart) {
    super(target)
    this.chart = chart
    this.isLog = false
    this.index = null
    this.readout = make('output', { class: 'readout', 'aria-live': 'polite' })
    this.box = make('div', { class: 'chart', tabindex: '0', role: 'group', 'aria-label': `${chart.title}: a chart; arrow keys go from value to value, + and - zoom, Escape shows all` })
    this.box.addEventListener('keydown', (press) => this.key(press))
    const log = make('button', { type: 'button', 'aria-pressed': 'false' }, 'Logarithmic')
    log.addEventListener('click', () => {
      this.isLog = !this.isLog
      log.setAttribute('aria-pressed', String(this.isLog))
      this.draw()
    })
    this.all = make('button', { type: 'button' }, 'Show all')
    this.all.addEventListener('click', () => this.draw())
    const canBeLog = !chart.y.is_close && chart.series.every((one) => one.points.every((point) => point.low > 0))
    target.replaceChildren(this.box, this.readout, make('p', { class: 'buttons' }, ...(canBeLog ? [log] : []), this.all))
    this.draw()
  }

  // Series may have values at different places; uPlot wants all places, and null where a series has none.
  align() {
    const places = new Map()
    this.chart.series.forEach((one, number) => {
      const taken = new Set()
      for (const point of one.points) {
        let x = point.x
        while (taken.has(x)) x += 1e-6 * Math.max(1, Math.abs(x))
        taken.add(x)
        if (!places.has(x)) places.set(x, [])
        places.get(x)[number] = point
      }
    })
    this.places = [...places.keys()].sort((one, other) => one - other)
    this.points = this.chart.series.map((_, number) => this.places.map((x) => places.get(x)[number] ?? null))
  }

  draw() {
    this.align()
    this.plot?.destroy()
    this.all.hidden = true
    const { x, y, series } = this.chart
    const [first, last] = x.names ? [1, x.names.length] : [this.places[0] ?? 0, this.places.at(-1) ?? 0]
    const edge = x.names ? 0.5 : (last - first || 12) * 0.04
    const labels = {
      ...x,
      space: x.names ? 130 : 44,
      incrs: this.places.every(Number.isInteger) ? WHOLE : null,
      values: (u, ticks) => ticks.map((tick) => (x.names ? x.names[tick - 1] ?? '' : x.log === 2 && tick >= 1024 && tick % 1024 === 0 ? `${tick / 1024}k` : digits(tick, 6)))
    }
    const range = x.log ? (u, low, high) => [low * 0.8, high * 1.25] : (u, low, high) => (low <= this.places[0] && high >= this.places.at(-1) ? [first - edge, last + edge] : [low, high])
    const heights = this.points.flat().filter(Boolean).flatMap((point) => [point.low, point.high])
    const top = Math.max(...heights, 0)
    const bottom = Math.min(...heights)
    const above = top - bottom || 0.1 * top
    this.plot = new uPlot({
      width: this.width,
      height: HEIGHT,
      padding: [null, x.names ? 50 : null, null, null],
      scales: {
        x: { time: false, distr: x.log ? 3 : 1, log: x.log === 2 ? 2 : 10, range },
        y: this.isLog ? { distr: 3, range: () => [bottom / 1.5, top * 1.5] } : { range: () => [y.is_close ? Math.max(0, bottom - 0.3 * above) : 0, top > 0 ? top + (y.is_close ? 0.3 * above : 0.06 * top) : 1] }
      },
      axes: axes(labels, y.unit),
      legend: { live: false, show: series.length > 1 || series.some((one) => one.verdict) },
      cursor: { drag: { x: true, y: false }, points: { size: 9 } },
      series: [{}, ...series.map((one, number) => this.look(one, number))],
      hooks: { draw: [(u) => this.drawRanges(u)], setCursor: [(u) => this.read(u.cursor.idx)], setSelect: [(u) => (this.all.hidden = this.all.hidden && u.select.width === 0)] }
    }, [this.places, ...this.points.map((line) => line.map((point) => point?.y ?? null))], this.box)
  }

  look(one, number) {
    const stroke = colour(one.verdict ? VERDICTS[one.verdict] : `c${(number % 4) + 1}`)
    const line = one.verdict ? { paths: () => null } : { dash: DASHES[number % 4], width: 2, paths: (u, series, from, to) => this.path(u, series, from, to) }
    return { label: one.label, stroke, spanGaps: true, ...line, points: { show: true, size: one.verdict === 'FAIL' ? 10 : 7, fill: one.verdict === 'INVALID' ? colour('paper') : stroke } }
  }

  // As in the report's pictures: what is further apart than by a factor of FARTHEST is not joined on a logarithmic axis.
  path(u, series, from, to) {
    const stroke = new Path2D()
    let before = null
    for (let place = from; place <= to; place += 1) {
      const [x, y] = [u.data[0][place], u.data[series][place]]
      if (y === null || y === undefined) continue
      const isBroken = (this.chart.series[series - 1].breaks ?? []).some((at) => before < at && at < x)
      const isJoined = before !== null && !isBroken && !(this.chart.x.log && x > FARTHEST * before)
      stroke[isJoined ? 'lineTo' : 'moveTo'](u.valToPos(x, 'x', true), u.valToPos(y, 'y', true))
      before = x
    }
    return { stroke }
  }

  // From the lowest to the highest repetition, each of them faint; an arrow where it is at least so much, a cross where there is no number; levels of a trend, and where it changes.
  drawRanges(u) {
    const context = u.ctx
    const [x, y] = [(place) => u.valToPos(place, 'x', true), (value) => u.valToPos(value, 'y', true)]
    const { left, top, width, height } = u.bbox
    const line = (style, wide, from, to) => {
      Object.assign(context, { strokeStyle: style, lineWidth: wide * devicePixelRatio })
      context.stroke(new Path2D(`M${from}L${to}`))
    }
    context.save()
    context.beginPath()
    context.rect(left, top, width, height)
    context.clip()
    Object.assign(context, { font: `${15 * devicePixelRatio}px system-ui, sans-serif`, textAlign: 'center' })
    this.points.forEach((points, number) => {
      const style = context.fillStyle = colour(`c${(number % 4) + 1}`)
      for (const at of this.chart.series[number].breaks ?? []) context.fillText('\u00d7', x(at) + 10 * number * devicePixelRatio, top + height - 4 * devicePixelRatio)
      points.forEach((point, place) => {
        const at = x(this.places[place])
        if (point?.is_at_least) context.fillText('\u2191', at, y(point.y) - 6 * devicePixelRatio)
        if (!point || point.values.length + (point.high > point.low) < 1) return
        context.globalAlpha = 0.8
        line(style, 1.5, [at, y(point.low)], [at, y(point.high)])
        context.globalAlpha = 0.35
        for (const value of point.values) {
          context.beginPath()
          context.arc(at, y(value), 2.5 * devicePixelRatio, 0, 7)
          context.fill()
        }
      })
      context.globalAlpha = 1
    })
    context.globalAlpha = 0.28
    for (const level of this.chart.levels ?? []) line(colour('c1'), 7, [x(level.from), y(level.y)], [x(level.to) + 1, y(level.y)])
    context.globalAlpha = 1
    context.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio])
    for (const change of this.chart.changes) line(colour(change.is_worse ? 'bad' : 'good'), 1.5, [x(change.x), top], [x(change.x), top + height])
    context.restore()
  }

  read(index) {
    if (index === null || index === undefined || index === this.index) return
    this.index = index
    const { y, series } = this.chart
    const said = series.map((one, number) => {
      const point = this.points[number][index]
      if (!point) return null
      const bound = point.is_at_least ? 'at least ' : ''
      const each = point.values.length ? ` (repetitions: ${point.values.map((value) => show(value, y.unit)).join(', ')})` : point.high > point.low ? ` (${show(point.low, y.unit)} to ${show(point.high, y.unit)})` : ''
      return `${series.length > 1 && !one.verdict ? `${one.label}, ` : ''}${point.name}: ${bound}${show(point.y, y.unit)}${each}`
    }).filter(Boolean)
    const before = this.chart.changes.filter((change) => Math.abs(change.x - this.places[index]) < 1).map((change) => change.text)
    this.readout.textContent = [...said, ...before].join('; ')
    this.link = this.points.map((line) => line[index] && linkOf(line[index])).find(Boolean) ?? null
    if (this.link) this.readout.append(' ', this.link)
  }

  key(press) {
    const { min, max } = this.plot.scales.x
    const go = { ArrowRight: 1, ArrowLeft: -1 }[press.key]
    if (go) this.moveTo(Math.min(this.places.length - 1, Math.max(0, (this.index ?? (go > 0 ? -1 : this.places.length)) + go)))
    else if (press.key === 'Enter' && this.link) this.link.click()
    else if (press.key === '+' || press.key === '-') {
      const middle = this.places[this.index ?? 0]
      const factor = press.key === '+' ? 0.5 : 2
      const zoomed = this.chart.x.log ? [middle * (min / middle) ** factor, middle * (max / middle) ** factor] : [middle - (middle - min) * factor, middle + (max - middle) * factor]
      this.zoom(...zoomed)
    } else if (press.key === 'Escape') this.draw()
    else return
    press.preventDefault()
  }

  zoom(min, max) {
    const range = this.plot.scales.x.range
    this.plot.scales.x.range = (u, low, high) => [low, high]
    this.plot.setScale('x', { min, max })
    this.plot.scales.x.range = range
    this.all.hidden = false
  }

  moveTo(index) {
    const heights = this.points.map((line) => line[index]?.y).filter((value) => value !== undefined)
    this.plot.setCursor({ left: this.plot.valToPos(this.places[index], 'x'), top: this.plot.valToPos(heights[0] ?? 0, 'y') })
    this.read(index)
  }
}

// What is behind a value: its trial, its point in the report, or its run.
function linkOf(point) {
  const { run, base } = document.querySelector('[data-run]').dataset
  if (point.trial) return make('a', { href: `${run}/trial/${point.trial}` }, 'the page of this trial')
  if (point.point) return make('a', { href: `${page ? `${run}/report` : ''}#point-${point.point}` }, 'its repetitions and trials')
  return point.file ? make('a', { href: `${base}/run/${encodeURIComponent(point.file)}` }, 'the page of this run') : null
}

// A chart of the last two minutes, which moves. Behind its lines are the moments at which the tester or its machine was away.
class LiveChart extends Chart {
  constructor(target, unit, lines, title, isSigned = false) {
    super(target)
    target.replaceChildren()
    Object.assign(this, { unit, lines, isSigned, lapses: [], data: [[], ...lines.map(() => [])] })
    target.setAttribute('role', 'img')
    target.setAttribute('aria-label', `${title} over the last two minutes; the numbers are in the text above`)
    this.draw()
  }

  draw() {
    this.plot?.destroy()
    this.plot = new uPlot({
      width: this.width,
      height: HEIGHT,
      scales: { x: { time: true, range: (u, low, high) => [Math.max(LiveChart.began, high - WINDOW_S) - 1, Math.max(high, LiveChart.began + 20) + 1] }, y: { range: (u, low, high) => [this.isSigned && low < 0 ? low * 1.08 : 0, high > 0 ? Math.max(high * 1.08, this.unit === 'ratio' ? 1e-3 : 0) : this.unit === 'ratio' ? 0.01 : 1] } },
      hooks: { drawClear: [(u) => this.drawLapses(u)] },
      axes: axes({ label: '', values: (u, ticks) => ticks.map((tick) => new Date(1000 * tick).toLocaleTimeString([], { hour12: false })) }, this.unit),
      cursor: { drag: { x: false, y: false } },
      series: [{ value: '{HH}:{mm}:{ss}' }, ...this.lines.map((line) => ({ label: line.label, stroke: colour(line.colour), width: line.width, dash: line.dash, value: (u, value) => show(value, this.unit, 4), points: { show: true, size: 3 + line.width, fill: colour(line.colour) } }))]
    }, this.data, this.target)
  }

  add(samples) {
    for (const sample of samples) {
      const last = this.data[0].at(-1)
      if (this.trial !== undefined && this.trial !== sample.trial && last < sample.at) this.put((last + sample.at) / 2, this.lines.map(() => null))
      this.trial = sample.trial
      this.put(sample.at, this.lines.map((line) => sample[line.direction]?.[line.value] ?? null))
    }
    const first = this.data[0].findIndex((at) => at >= this.data[0].at(-1) - 1.2 * WINDOW_S)
    if (first > 0) this.data.forEach((values) => values.splice(0, first))
    this.plot.setData(this.data)
    if (this.plot.cursor.left < 0) this.plot.setLegend({ idx: this.data[0].length - 1 }) // nobody points at a moment: the latest
  }

  drawLapses(u) {
    const context = u.ctx
    const { min, max } = u.scales.x
    context.save()
    context.globalAlpha = 0.3
    for (const [from, until, kinds] of this.lapses) {
      if (until < min || from > max) continue
      const left = u.valToPos(Math.max(from, min), 'x', true)
      const width = Math.max(2 * devicePixelRatio, u.valToPos(Math.min(until, max), 'x', true) - left)
      kinds.forEach((kind, place) => {
        context.fillStyle = colour(LAPSES[kind]?.[2] ?? 'soft')
        context.fillRect(left, u.bbox.top + (u.bbox.height * place) / kinds.length, width, u.bbox.height / kinds.length)
      })
    }
    context.restore()
  }

  put(at, values) {
    this.data[0].push(at)
    values.forEach((value, number) => this.data[number + 1].push(value))
  }
}

// Events: a page that nobody looks at asks for nothing

function listen(address, handlers) {
  let source = null
  const open = () => {
    if (document.hidden || source) return
    source = new EventSource(address)
    for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, (news) => handle(JSON.parse(news.data)))
  }
  const close = () => {
    source?.close()
    source = null
  }
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()))
  open()
  return close
}

// The list of runs

function followList(list) {
  let version = Number(list.dataset.version)
  listen(list.dataset.live, {
    changed: async (now) => {
      if (now === version) return
      version = now
      const answer = await fetch(location.href)
      if (!answer.ok) return
      const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('runs')
      if (!fresh) return
      const ticked = new Set([...list.querySelectorAll('input:checked')].map((input) => input.value))
      const focus = document.activeElement
      const key = list.contains(focus) ? [focus.tagName, focus.value ?? focus.getAttribute('href')] : null
      list.replaceChildren(...fresh.childNodes)
      for (const input of list.querySelectorAll('input')) input.checked = ticked.has(input.value)
      if (key) [...list.querySelectorAll(key[0])].find((one) => (one.value ?? one.getAttribute('href')) === key[1])?.focus()
    }
  })
}

// A run that is measured

const DIRECTIONS = { forward: 'Forward \u2192', reverse: 'Reverse \u2190' }
const ROWS = [['offered', 'offered_fps', 'fps'], ['received', 'received_fps', 'fps'], ['lost so far', 'loss_ratio', 'ratio'], ['median delay', 'median_us', 'us'], ['99.9th percentile', 'p999_us', 'us'], ['longest so far', 'max_us', 'us'], ['delay grows', 'slope_us_per_s', 'us/s']]

// The first direction is drawn wider, so that it can be seen behind the other one.
function lines(values) {
  return Object.keys(DIRECTIONS).flatMap((direction, place) => values.map(([value, label, dash]) => ({ direction, value, label: `${direction}, ${label}`, colour: `c${place + 1}`, width: place ? 2 : 4, dash })))
}

function followRun(page) {
  const charts = {}
  const draw = (id, unit, values, title, isSigned) => (charts[id] ??= new LiveChart(element(id), unit, lines(values), title, isSigned))
  let lapses = []
  let search = null
  let curve = null
  let heard = Date.now()
  let latest = {}
  const close = listen(page.dataset.events, {
    samples: (samples) => {
      const known = latest.at ?? 0
      const fresh = samples.filter((sample) => sample.at > known) // a source that was opened again sends all
      if (!fresh.length) return
      latest = fresh.at(-1)
      LiveChart.began ??= fresh[0].at // all charts have the same time
      const has = (value) => fresh.some((sample) => (sample.forward ?? sample.reverse)[value] !== null)
      if (has('offered_fps')) draw('rates', 'fps', [['offered_fps', 'offered', [4, 4]], ['received_fps', 'received', []]], 'Offered and received rates')
      if (has('loss_ratio')) draw('loss', 'ratio', [['loss_ratio', 'lost', []]], 'Loss so far')
      if (has('median_us')) draw('delay', 'us', [['median_us', 'median', []], ['p999_us', '99.9th percentile', [2, 3]]], 'Delay')
      else if (has('offered_fps')) draw('delay', 'us', [['mean_us', 'mean', []]], 'Delay')
      if (has('slope_us_per_s')) draw('queue', 'us/s', [['slope_us_per_s', 'growth', []]], 'Growth of the delay', true)
      for (const chart of Object.values(charts)) {
        chart.lapses = lapses
        chart.add(fresh)
      }
    },
    lapses: (found) => {
      lapses = found
      showLapses(lapses)
      for (const chart of Object.values(charts)) {
        chart.lapses = lapses
        chart.plot.redraw()
      }
    },
    now: (running) => {
      heard = Date.now()
      showNow(running, latest)
    },
    found: (found) => {
      search?.remove()
      curve?.remove()
      search = searchChart(found)
      curve = curveChart(found.points)
      showTrials(found.trials)
      showPoints(found.points)
      showInside(found.inside)
    },
    run: (facts) => {
      element('headlines').replaceChildren(...facts.headlines.map((line) => make('span', { class: 'result' }, line)))
      element('whole').textContent = facts.share === null ? '' : `Of the whole run ${Math.round(100 * facts.share)} % is measured${facts.left_s === null ? '' : `; about ${time(facts.left_s)} left`}.`
    },
    ended: () => {
      close()
      location.reload()
    }
  })
  setInterval(() => {
    const silence = element('silence')
    silence.hidden = Date.now() - heard < SILENT_MS
    if (!silence.hidden) silence.textContent = `No sign of it for ${time((Date.now() - heard) / 1000)}: ports are being opened, a hook runs, or hosts are learnt.`
  }, 1000)
}

function showLapses(lapses) {
  const recent = lapses.filter(([, until]) => until > Date.now() / 1000 - WINDOW_S)
  const kinds = Object.keys(LAPSES).filter((kind) => recent.some((lapse) => lapse[2].includes(kind)))
  element('lapses').hidden = !recent.length
  element('lapses').replaceChildren(`Bands: the tester or its machine was away ${recent.length === 1 ? 'once' : `${recent.length} times`} in the last two minutes, for ${show(Math.max(...recent.map(([from, until]) => until - from), 0), 's', 3)} at most; none of it is judged. `, ...kinds.map((kind) => make('span', { class: LAPSES[kind][0] }, LAPSES[kind][1])))
}

function showInside(inside) {
  element('inside').hidden = !inside
  if (!inside) return
  element('inside-of').replaceChildren('In ', toTrial(inside.row, `trial ${inside.trial}`), `, the last one that has ended. The DUT counted ${inside.dropped_packets ?? NONE} dropped packets.`)
  const bar = (cpu) => make('meter', { min: 0, max: 1, value: cpu.busy, 'aria-label': `CPU ${cpu.cpu}, busy` }, show(cpu.busy, 'ratio', 3))
  element('inside-cpus').replaceChildren(...inside.cpus.map((cpu) => make('tr', {}, make('td', { 'data-label': 'CPU', class: 'number' }, make('span', {}, String(cpu.cpu))), make('td', { 'data-label': 'busy' }, make('span', {}, bar(cpu), ` ${show(cpu.busy, 'ratio', 3)}`)), make('td', { 'data-label': 'in softirqs', class: 'number' }, make('span', {}, show(cpu.softirq, 'ratio', 3))))))
  element('inside-queues').replaceChildren(...inside.queues.map((queue) => row([['interface', queue.interface], ['queue', String(queue.queue), 'number'], ['packets', String(queue.packets), 'number'], ['share', show(queue.share, 'ratio', 3), 'number']])))
}

function showNow(running, latest) {
  if (!running) {
    element('now').textContent = 'between trials'
    return
  }
  const trial = running.trial === null ? '' : `, trial ${running.trial}`
  const load = running.rate_fps === null ? running.what : `${show(running.rate_fps, 'fps')} per direction`
  element('now').textContent = `${running.point}, repetition ${running.repetition}${trial}${load ? `: ${load}` : ''}`
  element('left').textContent = [running.phase && `${running.phase}, ${time(running.elapsed_s)} of ${time(running.elapsed_s + running.left_s)}`, running.left_of_all_s !== null && `about ${time(Math.max(0, running.left_of_all_s - running.elapsed_s))} left of this measurement`].filter(Boolean).join('; ')
  element('share').value = 100 * running.share
  const bracket = [running.lower_fps ? `passes at ${show(running.lower_fps, 'fps')}` : '', running.upper_fps ? `fails at ${show(running.upper_fps, 'fps')}` : ''].filter(Boolean)
  element('bracket').textContent = bracket.length ? `So far it ${bracket.join(' and ')} per direction.` : ''
  element('tiles').replaceChildren(...Object.entries(DIRECTIONS).filter(([direction]) => latest[direction]).map(([direction, title]) => {
    const rows = ROWS.flatMap(([name, key, unit]) => [make('dt', {}, name), make('dd', {}, show(latest[direction][key], unit))])
    const of = latest.trial === null ? '' : `trial ${latest.trial}`
    return make('section', { class: 'tile', 'aria-label': direction }, make('h2', {}, `${title} `, make('span', { class: 'small' }, of)), make('dl', {}, ...rows))
  }))
}

function searchChart(found) {
  const point = (trial) => ({ x: trial.number, y: trial.rate_fps, low: trial.rate_fps, high: trial.rate_fps, values: [], trial: trial.row, name: `trial ${trial.number}, ${trial.verdict}, ${show(trial.loss_ratio, 'ratio')} lost` })
  const series = Object.keys(VERDICTS).map((verdict) => ({ label: verdict, verdict, points: found.trials.filter((trial) => trial.verdict === verdict).map(point) })).filter((one) => one.points.length)
  if (!series.length) return null
  return new ValueChart(element('search'), { title: `Loads that were tried: ${found.search}`, x: { label: 'trial', log: 0 }, y: { label: 'load', unit: 'fps' }, series, changes: [] })
}

function curveChart(points) {
  const valued = points.filter((point) => point.values.length && point.unit === points[0].unit)
  const isAddresses = new Set(valued.map((point) => point.addresses)).size > 1
  const place = (point) => (isAddresses ? point.addresses : Number(point.frame_size))
  if (new Set(valued.map(place)).size < 2 || valued.some((point) => Number.isNaN(place(point)))) return null
  const groups = valued.reduce((all, point) => all.set(point.suite, [...(all.get(point.suite) ?? []), point]), new Map())
  const series = [...groups].slice(0, 4).map(([suite, of]) => ({
    label: suite,
    points: of.map((point) => ({ ...point, x: place(point), point: point.number, name: point.key })).sort((one, other) => one.x - other.x)
  }))
  return new ValueChart(element('curve'), { title: 'Results so far', x: { label: isAddresses ? 'addresses on each side' : 'frame size with FCS, octets', log: isAddresses ? 2 : 0 }, y: { unit: points[0].unit }, series, changes: [] })
}

function row(cells) {
  return make('tr', {}, ...cells.map(([name, text, style]) => make('td', { 'data-label': name, class: style ?? '' }, make('span', {}, text))))
}

function toTrial(row, text) {
  return make('a', { href: `${page.dataset.run}/trial/${row}` }, text)
}

function showTrials(trials) {
  element('trials').replaceChildren(...trials.slice().reverse().map((trial) => row([['trial', toTrial(trial.row, String(trial.number)), 'number'], ['load', show(trial.rate_fps, 'fps', 6), 'number'], ['time', show(trial.duration_s, 's'), 'number'], ['verdict', trial.verdict, trial.verdict in VERDICTS ? trial.verdict : ''], ['lost', show(trial.loss_ratio, 'ratio'), 'number']])))
}

function showPoints(points) {
  element('points').replaceChildren(...points.map((point) => {
    const result = !point.values.length ? (point.is_begun ? 'being measured' : NONE) : point.low < point.high ? `${show(point.low, point.unit)} to ${show(point.high, point.unit)}` : show(point.y, point.unit)
    return row([['point', point.is_begun ? make('a', { href: `${page.dataset.run}/report#point-${point.number}` }, point.key) : point.key], ['result', `${point.is_at_least ? 'at least ' : ''}${result}`, 'number'], ['repetitions', `${point.values.length} of ${point.asked}`, 'number']])
  }))
}

// Charts of what was measured

function showCharts(charts) {
  const list = element('chart-list')
  element('charts').hidden = false
  const seen = new IntersectionObserver((found) => {
    for (const one of found.filter((each) => each.isIntersecting)) {
      seen.unobserve(one.target)
      new ValueChart(one.target, charts[one.target.dataset.number])
    }
  }, { rootMargin: '400px' })
  // Searches are for who wants to know how a result came about.
  const isSearch = (chart) => chart.series.some((one) => one.verdict)
  const searches = make('details', charts.every(isSearch) ? { open: '' } : {}, make('summary', {}, 'Loads that the searches tried'))
  charts.forEach((chart, number) => {
    const target = make('div', { 'data-number': number, class: 'chart-place' })
    const figure = element(chart.figure)
    if (figure) figure.querySelector('h3').after(target) // in the place of the picture, which remains for print
    else (isSearch(chart) ? searches : list).append(make('h3', {}, chart.title), target)
    figure?.classList.add('moves')
    seen.observe(target)
  })
  if (charts.some(isSearch)) list.append(searches)
}

// A point of the report that an address leads to is shown open.
function openTarget() {
  const target = element(location.hash.slice(1))
  if (!target?.matches('details')) return
  target.open = true
  target.scrollIntoView()
}

// A table that is wider than its place is scrolled by keys only if it can have the focus.
function fitTables() {
  for (const table of document.querySelectorAll('div.table')) {
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0
    else table.removeAttribute('tabindex')
  }
}

fitTables()
const list = element('runs')
if (list) followList(list)
const page = element('live')
if (page) followRun(page)
const data = element('chart-data')
if (data) showCharts(JSON.parse(data.textContent))
addEventListener('hashchange', openTarget)
openTarget()
