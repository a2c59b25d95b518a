"""Other people's simulators and formulas on the systems that `sooner sim` plays; one JSON line a figure.

simulators.py exact                      mean response times by most-queue's formulas and octave's queueing package
simulators.py TOOL POLICY JOBS SEED      one run: tool is line, ciw or most-queue; M/M/1 at load 0.9
simulators.py ciw-mpl LIMIT JOBS SEED    M/H2/1 at load 0.8, C2 16, at most LIMIT jobs sharing, by Ciw
"""

import json
import math
import shutil
import subprocess
import sys
import time

LOAD = 0.9


def put(**figure):
    print(json.dumps(figure), flush=True)


def balanced(c2):
    """Probability and rates of the branches of a hyperexponential law of mean 1 with balanced means."""
    p = (1 + math.sqrt((c2 - 1) / (c2 + 1))) / 2
    return p, 2 * p, 2 * (1 - p)


def exact():
    from most_queue.random.distributions import H2Params
    from most_queue.theory.srpt.mg1_fb import MG1FbCalc
    from most_queue.theory.srpt.mg1_psjf import MG1PsjfCalc
    from most_queue.theory.srpt.mg1_sjf import MG1SjfCalc
    from most_queue.theory.srpt.mg1_srpt import MG1SrptCalc

    calculators = {"srpt": MG1SrptCalc, "psjf": MG1PsjfCalc, "sjf": MG1SjfCalc, "las": MG1FbCalc}
    for c2 in (4, 16):
        for policy, calculator in calculators.items():
            p, mu1, mu2 = balanced(c2)
            one = calculator()
            one.set_sources(0.8)
            one.set_servers(H2Params(p1=p, mu1=mu1, mu2=mu2), "H")
            put(tool="most-queue", what="mg1", policy=policy, c2=c2, mean=one.run().v[0])
    if shutil.which("octave-cli") is None:
        put(tool="octave", what="mva", missing="octave-cli and the package octave-queueing")
        return
    code = "pkg load queueing; [U R Q X] = qncsmva({n}, [1 0.4 2.5], [1 1 1], [1 1 1], 20); printf('%.12g', sum(R));"
    for users in (1, 10, 100):
        run = subprocess.run(
            ["octave-cli", "--quiet", "--eval", code.format(n=users)], capture_output=True, text=True, check=True
        )
        put(tool="octave", what="mva", users=users, mean=float(run.stdout.split()[-1]))


def line(policy, jobs, seed):
    from line_solver import LDES, Exp, Network, OpenClass, Queue, SchedStrategy, Sink, Source

    names = {"fcfs": "FCFS", "fair": "PS", "srpt": "SRPT", "psjf": "PSJF", "las": "FB", "fsp": "FSP"}
    model = Network("model")
    source, sink = Source(model, "source"), Sink(model, "sink")
    queue = Queue(model, "queue", getattr(SchedStrategy, names[policy]))
    jobs_class = OpenClass(model, "jobs")
    source.setArrival(jobs_class, Exp(LOAD))
    queue.setService(jobs_class, Exp(1.0))
    model.link(Network.serialRouting(source, queue, sink))
    start = time.perf_counter()
    table = LDES(model, samples=jobs, seed=seed, verbose=False).getAvgTable()
    return time.perf_counter() - start, float(table["RespT"].iloc[-1])


def ciw_run(policy, jobs, seed, limit=None):
    import ciw

    node = {}
    if limit:
        p, mu1, mu2 = balanced(16)
        arrivals, sizes = 0.8, ciw.dists.HyperExponential([mu1, mu2], [p, 1 - p])
        node = {"node_class": ciw.PSNode}
        servers = limit
    else:
        arrivals, sizes = LOAD, ciw.dists.Exponential(1.0)
        node = {"node_class": ciw.PSNode} if policy == "fair" else {}
        servers = float("inf") if policy == "fair" else 1
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(arrivals)],
        service_distributions=[sizes],
        number_of_servers=[servers],
        ps_thresholds=[1] if node else None,
    ) if node else ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(arrivals)],
        service_distributions=[sizes],
        number_of_servers=[servers],
    )
    ciw.seed(seed)
    start = time.perf_counter()
    simulation = ciw.Simulation(network, **node)
    simulation.simulate_until_max_customers(jobs, method="Finish")
    seconds = time.perf_counter() - start
    times = [record.exit_date - record.arrival_date for record in simulation.get_all_records()]
    return seconds, sum(times) / len(times)


def most_queue(policy, jobs, seed):
    import numpy
    from most_queue.sim.single_server_disciplines import FBSim, ProcessorSharingSim
    from most_queue.sim.size_based import SizeBasedQsSim

    if policy in ("fair", "las"):
        simulation = {"fair": ProcessorSharingSim, "las": FBSim}[policy]()
    else:
        simulation = SizeBasedQsSim(1, policy.upper(), verbose=False)
    simulation.generator = numpy.random.default_rng(seed)
    simulation.set_sources(LOAD, "M")
    simulation.set_servers(1.0, "M")
    start = time.perf_counter()
    result = simulation.run(jobs)
    return time.perf_counter() - start, float(result.v[0])


def main():
    words = sys.argv[1:]
    if words == ["exact"]:
        exact()
    elif words[0] == "ciw-mpl":
        limit, jobs, seed = map(int, words[1:])
        seconds, mean = ciw_run("fair", jobs, seed, limit)
        put(tool="ciw", what="mpl", mpl=limit, jobs=jobs, seconds=seconds, mean=mean)
    else:
        tool, policy, jobs, seed = words[0], words[1], int(words[2]), int(words[3])
        run = {"line": line, "ciw": ciw_run, "most-queue": most_queue}[tool]
        seconds, mean = run(policy, jobs, seed)
        put(tool=tool, what="speed", policy=policy, jobs=jobs, seconds=seconds, mean=mean)


main()
