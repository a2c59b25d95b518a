//! Examples of what computes: advise, sim, solve, figures.

use super::Entry;

/// By path; `""` is `sooner` itself.
pub const TABLE: &[Entry] = &[
    (
        "advise",
        &[
            (
                "sudo sooner advise /var/log/nginx/access.log* --uplink 100mbit",
                "Forecast what each order would gain for these logs on this uplink",
            ),
            (
                "sooner advise litellm.jsonl --html advice.html",
                "Forecast the queue before a language model, and draw it",
            ),
        ],
    ),
    (
        "figures",
        &[
            (
                "sooner figures 13.3 --html figures.html",
                "Compute one figure, and draw it into a page",
            ),
            (
                "sooner figures --jobs 100000 --json",
                "Compute all of them with fewer jobs, as JSON",
            ),
        ],
    ),
    (
        "sim",
        &[
            (
                "sooner sim --sizes h2:mean=1,c2=16 --load 0.5,0.8,0.9 --policy fair,srpt,las",
                "Simulate three policies under three loads",
            ),
            (
                "sooner sim model.toml --html response.html",
                "Simulate the system of a model file, and draw its mean response times",
            ),
        ],
    ),
    (
        "solve",
        &[
            (
                "sooner solve mg1 --sizes trace:epa --load 0.8",
                "Compute one server under each policy",
            ),
            (
                "sooner solve mva --demands 20ms,5ms --think 1s --users 1,10,100",
                "Compute a closed network of two stations",
            ),
        ],
    ),
    (
        "solve mg1",
        &[
            (
                "sooner solve mg1 --sizes trace:epa --load 0.8",
                "Compute mean response time and slowdown under each policy",
            ),
            (
                "sooner solve mg1 --sizes h2:mean=1,c2=16 --load 0.9 --policy srpt,las --json",
                "Compute two policies, as JSON",
            ),
        ],
    ),
    (
        "solve mva",
        &[
            (
                "sooner solve mva --demands 20ms,5ms --think 1s --users 1,10,100",
                "Compute throughput and response by the number of users",
            ),
            (
                "sooner solve mva --demands 20ms,5ms --share 0.95",
                "Find the fewest users with 95 per cent of the highest throughput",
            ),
        ],
    ),
    (
        "solve mpl",
        &[
            (
                "sooner solve mpl --sizes h2:mean=1,c2=16 --load 0.9",
                "Compute response times by how many jobs share the processor",
            ),
            (
                "sooner solve mpl --sizes exp:mean=1 --load 0.8 --mpl 1,4,16 --json",
                "Compute three limits, as JSON",
            ),
        ],
    ),
    (
        "solve overload",
        &[
            (
                "sooner solve overload --sizes bpareto:k=1,p=1e4,alpha=1.1 --schedule 0.4,1.3,82000,41000",
                "Compute sharing and SRPT under a load that is above 1 for a while",
            ),
            (
                "sooner solve overload --sizes trace:epa --schedule 0.6,1.2,1e8,5e7 --json",
                "Compute it for the sizes of a trace, as JSON",
            ),
        ],
    ),
    (
        "solve model",
        &[
            (
                "sooner solve model model.toml",
                "Compute the system of a model file",
            ),
            (
                "sooner solve model --sizes trace:epa --load 0.8 --policy fair,srpt",
                "Compute a system that flags describe",
            ),
        ],
    ),
];
